import { METHODS } from '@thv/mcp/methods'
import { type SessionOptions, withServer } from './mcp-session.ts'
import type { ProgramEnv } from './program.ts'
import { renderTools } from './render-tools.ts'
import { plainText } from './text/plain-text.ts'

export interface ToolsOptions extends SessionOptions {
  readonly output: 'table' | 'json'
}

/** thv tools NAME|URL */
export async function runTools(server: string, options: ToolsOptions, env: ProgramEnv): Promise<void> {
  await withServer(server, { ...options, env }, async ({ client, limits }) => {
    const hasTools = Object.keys(client.capabilities).length === 0 || 'tools' in client.capabilities
    const tools = hasTools ? await client.list(METHODS.toolsList, limits) : []
    if (options.output === 'json') {
      env.out(`${JSON.stringify(tools, null, 2)}\n`)
      return
    }
    if (tools.length > 0) env.out(renderTools(tools))
    const { serverInfo = {}, protocolVersion, transport } = client
    const who = plainText(`${serverInfo['name'] ?? 'the server'} ${serverInfo['version'] ?? ''}`)
    env.err(`${tools.length} tool${tools.length === 1 ? '' : 's'} of ${who} (${protocolVersion} over ${transport})\n`)
  })
}
