import { ThvError } from '@thv/kernel/errors'
import { McpErrorResponse } from '@thv/mcp/client/client-errors'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { type Session, type SessionOptions, withServer } from './mcp-session.ts'
import type { ProgramEnv } from './program.ts'
import { createProgressLine } from './progress-line.ts'
import { renderResult } from './render-result.ts'
import { suggestion } from './text/closest.ts'
import { toolArguments } from './tool-arguments.ts'

export interface CallOptions extends SessionOptions {
  readonly output: 'text' | 'json'
}

export interface ToolCall {
  readonly server: string
  readonly tool: string
  readonly words: readonly string[]
}

/** thv call NAME|URL TOOL k=v … */
export async function runCall({ server, tool, words }: ToolCall, options: CallOptions, env: ProgramEnv): Promise<void> {
  await withServer(server, { ...options, env }, async ({ client, limits }) => {
    const { inputSchema } = await findTool(client, tool, limits)
    const args = toolArguments(words, { tool, inputSchema, cwd: env.cwd })
    const progress = createProgressLine(env)
    const onProgress = env.isTerminal ? { onProgress: progress.show } : {}
    const logLevel = options.verbose ? ({ logLevel: 'debug' } as const) : {}
    const called = client.request(METHODS.toolsCall, { name: tool, arguments: args }, { ...limits, ...onProgress, ...logLevel })
    const result = await called.catch((error: unknown) => Promise.reject(explained(error, tool))).finally(progress.clear)
    print(result, { tool, isJson: options.output === 'json', env })
  })
}

async function findTool(client: McpClient, name: string, limits: Session['limits']): Promise<JsonObject> {
  const tools = await client.list(METHODS.toolsList, limits)
  const found = tools.find((tool) => tool['name'] === name)
  if (found) return found
  const names = tools.map((tool) => String(tool['name']))
  const all = names.length <= MAX_LISTED ? ` It has ${names.join(', ') || 'none'}.` : ` "thv tools" lists all ${names.length}.`
  throw new ThvError('usage', `the server has no tool ${JSON.stringify(name)}.${suggestion(name, names)}${all}`)
}

/** A tool's failure message goes to stderr, except where a program reads it. */
function print(result: JsonObject, { tool, isJson, env }: { tool: string; isJson: boolean; env: ProgramEnv }): void {
  const hasFailed = result['isError'] === true
  if (isJson) env.out(`${JSON.stringify(result, null, 2)}\n`)
  else if (hasFailed) env.err(renderResult(result))
  else env.out(renderResult(result))
  if (hasFailed) throw new ThvError('tool_failed', `tool ${JSON.stringify(tool)} failed`)
}

/** -32021 says in its data what the tool needs of its client. */
function explained(error: unknown, tool: string): unknown {
  if (!(error instanceof McpErrorResponse) || error.rpcCode !== -32021) return error
  const required =
    isObject(error.data) && isObject(error.data['requiredCapabilities']) ? Object.keys(error.data['requiredCapabilities']) : []
  return new ThvError(
    'tool_failed',
    `tool ${JSON.stringify(tool)} requires client capabilities that thv does not have: ${required.join(', ') || 'unknown'}`,
  )
}

const MAX_LISTED = 12
