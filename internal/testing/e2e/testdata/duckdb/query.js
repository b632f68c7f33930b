// Runs the blocks of SQL of a Markdown file whose kind is one of a list, in a folder, and writes a line of JSON for each query: its rows.
import {DuckDBInstance} from '@duckdb/node-api';
import {readFileSync} from 'node:fs';

const [markdown, folder, kinds] = process.argv.slice(2);
const blocks = [...readFileSync(markdown, 'utf8').matchAll(/```sql ?(.*)\n([\s\S]*?)```/g)].filter(([, kind]) => kinds.split(',').includes(kind));
process.chdir(folder);
const connection = await (await DuckDBInstance.create()).connect();
for (const statement of blocks.map(([, , text]) => text).join('\n').split(/;\s*\n/).filter((text) => text.trim())) {
  try {
    const rows = (await connection.runAndReadAll(statement)).getRowsJson();
    console.log(JSON.stringify({statement: statement.trim(), rows}));
  } catch (error) {
    console.error(`${statement}\n${error.message}`);
    process.exitCode = 1;
  }
}
