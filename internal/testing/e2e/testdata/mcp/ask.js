// Asks a server of the Model Context Protocol about the service `shop`, and prints the answers. The arguments are `http`, a URL and the
// value of the header Authorization; or `stdio`, a command and its arguments.
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [kind, target, ...rest] = process.argv.slice(2);
const transport = kind === 'http'
  ? new StreamableHTTPClientTransport(new URL(target), {requestInit: {headers: {Authorization: rest[0]}}})
  : new StdioClientTransport({command: target, args: rest});
const client = new Client({name: 'ask', version: '1.0.0'});
await client.connect(transport);
const {tools} = await client.listTools();
console.log(tools.map((tool) => tool.name).join(' '));
const cpu = {service: 'shop', profile: 'process_cpu', type: 'cpu', seconds: 3600};
for (const [name, args] of [
  ['list_profiles', {service: 'shop'}],
  ['hottest_functions', {...cpu, limit: 2}],
  ['call_tree', {...cpu, function: 'handle'}],
  ['call_tree', {...cpu, function: '/marshal$/', direction: 'callers'}],
  ['compare', {...cpu, attributes: ['version=2'], base: {attributes: ['version=1']}}],
  ['hottest_functions', {...cpu, limit: 1000}],
]) {
  const answer = await client.callTool({name, arguments: args});
  console.log(`\n== ${name} ${JSON.stringify(args)}${answer.isError ? ' is refused' : ''}`);
  console.log(answer.content.map((content) => content.text).join('\n').trimEnd());
}
await client.close();
