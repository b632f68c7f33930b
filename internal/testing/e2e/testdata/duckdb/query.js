// Runs the SQL of a Markdown file in a folder, and writes a line of JSON for each statement: its rows.
import {DuckDBInstance} from '@duckdb/node-api';
import {readFileSync} from 'node:fs';

const [markdown, folder] = process.argv.slice(2);
const blocks = readFileSync(markdown, 'utf8').match(/```sql\n[\s\S]*?```/g).map((block) => block.slice(7, -3));
process.chdir(folder);
const connection = await (await DuckDBInstance.create()).connect();
for (const statement of blocks.join('\n').split(/;\s*\n/).filter((text) => text.trim())) {
  try {
    const rows = (await connection.runAndReadAll(statement)).getRowObjectsJson();
    console.log(JSON.stringify({statement: statement.trim(), rows}));
  } catch (error) {
    console.error(`${statement}\n${error.message}`);
    process.exitCode = 1;
  }
}
