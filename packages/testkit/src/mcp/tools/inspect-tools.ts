import type { Tool } from '../features/call.ts'
import { jsonResult, textResult } from '../features/content.ts'
import { objectOf } from '../wire/json-rpc.ts'
import { BOOLEAN, inputs, STRING, stringArg } from './arguments.ts'

/** Tools that tell a test what arrived here, and who answered. */
export const INSPECT_TOOLS: readonly Tool[] = [
  {
    name: 'echo',
    description: 'Returns its arguments as they came',
    inputSchema: { type: 'object', properties: { text: STRING }, additionalProperties: true },
    run: ({ args }) => ({ content: [{ type: 'text', text: JSON.stringify(args) }], structuredContent: { arguments: args } }),
  },
  {
    name: 'report_request',
    description: 'Reports the headers, session, metadata and client that this server saw',
    inputSchema: { type: 'object', additionalProperties: true },
    run: ({ era, params, origin }) =>
      jsonResult({
        era,
        transport: origin.transport,
        protocolVersion: origin.protocolVersion,
        session: origin.session ?? null,
        headers: origin.headers ?? null,
        meta: objectOf(params['_meta']),
        params,
        clientInfo: origin.clientInfo ?? null,
        clientCapabilities: origin.clientCapabilities,
      }),
  },
  {
    name: 'who_am_i',
    description: 'Names the server, its process, its start and the session',
    inputSchema: inputs(),
    run: ({ world, origin }) =>
      jsonResult({ name: world.options.name, pid: process.pid, instance: world.instance, session: origin.session ?? null }),
  },
  {
    name: 'fixture_stats',
    description: 'Counts of what this server received, for tests that have only the MCP connection',
    inputSchema: inputs(),
    run: ({ world }) => jsonResult(world.stats.counts()),
  },
  {
    name: 'set_tool',
    description: 'Adds or removes a tool and announces it',
    inputSchema: inputs({ name: STRING, present: BOOLEAN }),
    run: ({ world, args }) => {
      const name = stringArg(args, 'name', 'zz_dynamic')
      if (args['present'] === false) world.tools.delete(name)
      else world.tools.set(name, dynamicTool(name))
      world.changes.emit({ kind: 'list', list: 'tools' })
      return textResult('announced')
    },
  },
]

function dynamicTool(name: string): Tool {
  return { name, description: 'Was added while the server ran', inputSchema: inputs(), run: () => textResult(`I am ${name}`) }
}
