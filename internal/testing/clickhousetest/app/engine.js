// Answers queries by ClickHouse's engine, which has no port of its own here. Each line of the input is a query in JSON, and each line of
// the output its result in base64, or an error, and how many milliseconds it took.
const {Session} = require('chdb');
const readline = require('node:readline');

const session = new Session(process.argv[2]);
(async () => {
  for await (const line of readline.createInterface({input: process.stdin})) {
    let answer;
    try {
      const {sql, format} = JSON.parse(line);
      const began = performance.now();
      const result = await session.queryAsync(sql, {format});
      answer = {took: performance.now() - began, data: Buffer.from(result.bytes()).toString('base64')};
    } catch (error) {
      answer = {error: error.message};
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
  session.close();
})();
