import { createOutbound } from '@thv/http/outbound/outbound'
import { errorMessage } from '@thv/kernel/errors'
import { isObject, type JsonObject } from '../../json-rpc.ts'
import { isLegacyVersion } from '../../versions.ts'
import { createStreamableHttpClient } from '../http/streamable-http-client.ts'
import type { McpClient } from '../mcp-client.ts'

/*
 * The program that the official conformance suite starts with the URL of its mock server: does with our client what the scenario in the
 * environment calls for. The suite judges the traffic, not the exit code.
 */

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const version = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] ?? '2025-11-25'
const context: JsonObject = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}')

type Action = (client: McpClient) => Promise<unknown>

const call = (client: McpClient, name: string, args: JsonObject = {}) => client.request('tools/call', { name, arguments: args })

/** Calls every tool that is listed, and none that was left out. */
const callAll: Action = async (client) => {
  for (const tool of await client.list('tools/list')) await call(client, String(tool['name']))
}

const ACTIONS: Readonly<Record<string, Action>> = {
  initialize: (client) => client.list('tools/list'),
  tools_call: async (client) => {
    await client.list('tools/list')
    await call(client, 'add_numbers', { a: 5, b: 3 })
  },
  'elicitation-sep1034-client-defaults': (client) => call(client, 'test_client_elicitation_defaults'),
  'sse-retry': (client) => call(client, 'test_reconnection'),
  'request-metadata': callAll,
  'http-standard-headers': async (client) => {
    await callAll(client)
    for (const { uri } of await client.list('resources/list')) await client.request('resources/read', { uri })
    for (const { name } of await client.list('prompts/list')) await client.request('prompts/get', { name })
  },
  'http-custom-headers': async (client) => {
    await client.list('tools/list')
    for (const each of Array.isArray(context['toolCalls']) ? context['toolCalls'] : []) {
      await call(client, String(each.name), isObject(each.arguments) ? each.arguments : {})
    }
  },
  'http-invalid-tool-headers': callAll,
  'sep-2322-client-request-state': async (client) => {
    for (const suffix of ['echo_state', 'no_state', 'unrelated', 'no_result_type']) await call(client, `test_mrtr_${suffix}`)
  },
  'json-schema-ref-no-deref': (client) => client.list('tools/list'),
  'json-schema-2020-12-preservation': async (client) => {
    const tools = await client.list('tools/list')
    const observed = tools.find((tool) => isObject(tool['inputSchema']) && '$schema' in tool['inputSchema'])
    const echo = tools.find((tool) => String(tool['name']).includes('echo'))
    if (echo) await call(client, String(echo['name']), { schema: observed?.['inputSchema'] ?? {} })
  },
}

/** Fills in what the schema proposes. */
function elicitation(params: JsonObject): JsonObject {
  const schema = isObject(params['requestedSchema']) ? params['requestedSchema'] : {}
  const properties = Object.entries(isObject(schema['properties']) ? schema['properties'] : {})
  const content = Object.fromEntries(
    properties.flatMap(([name, each]) => (isObject(each) && 'default' in each ? [[name, each['default']]] : [])),
  )
  return { action: 'accept', content: scenario.startsWith('sep-2322') ? { confirmed: true } : content }
}

const url = process.argv.at(-1) ?? ''
await using outbound = createOutbound()
await using client = createStreamableHttpClient({
  url,
  outbound,
  clientInfo: { name: 'toolhive-ts', version: '0.1.0' },
  // The mock of this scenario answers neither discovery nor handshake.
  ...(scenario === 'sep-2322-client-request-state' && { era: 'modern' }),
  ...(isLegacyVersion(version) && { legacyVersion: version }),
  capabilities: { elicitation: { form: { applyDefaults: true } } },
  handlers: { elicitation },
  onWarning: (text) => console.error(text),
})
try {
  await ACTIONS[scenario]?.(client)
} catch (error) {
  console.error(errorMessage(error))
  process.exitCode = 1
}
