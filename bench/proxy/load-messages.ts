import { LARGE_BYTES, LAST_TOOL, LEGACY, MODERN } from './lean-answers.ts'
import type { Era, Tool } from './load-plan.ts'

/* Messages of the load generator, as texts: it builds them by hand so that it costs less than the program it measures. */

const CLIENT = { name: 'load', version: '1.0.0' }
const ENVELOPE = JSON.stringify({
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': CLIENT,
})

export const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT },
})
export const INITIALIZED = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })

export function callText(era: Era, tool: Tool, { id, text }: { id: number; text: string }): string {
  const meta = era === 'modern' ? `,"_meta":${ENVELOPE}` : ''
  if (tool === 'list') return `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{${meta.slice(1)}}}`
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{"text":"${text}"}${meta}}}`
}

export const BASE_HEADERS = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream']

export function callHeaders(era: Era, tool: Tool, sessionId: string | undefined): string[] {
  if (era === 'modern' && tool === 'list') return [...BASE_HEADERS, 'mcp-protocol-version', MODERN, 'mcp-method', 'tools/list']
  if (era === 'modern') return [...BASE_HEADERS, 'mcp-protocol-version', MODERN, 'mcp-method', 'tools/call', 'mcp-name', tool]
  return [...BASE_HEADERS, 'mcp-protocol-version', LEGACY, ...(sessionId === undefined ? [] : ['mcp-session-id', sessionId])]
}

interface Answer {
  readonly id?: unknown
  readonly result?: { readonly content?: readonly { readonly text?: unknown }[]; readonly resultType?: unknown }
}

/** Throws when an answer is not the one to this call; a slow one is a stream that begins with an event without data. Ids repeat between sessions, texts do not: a mixed-up answer shows. */
export function checkAnswer(answer: string, expected: { era: Era; id: number; text: string }): void {
  const json = answer.startsWith('{') ? answer : (/^data: ?(\{.*)$/m.exec(answer)?.[1] ?? 'null')
  const { id, result } = (JSON.parse(json) ?? {}) as Answer
  const isComplete = expected.era === 'legacy' || result?.resultType === 'complete'
  if (id === expected.id && result?.content?.[0]?.text === expected.text && isComplete) return
  throw new Error(`the answer to call ${expected.id} (${expected.text}) was ${answer.slice(0, 500)}`)
}

/** Throws when a large answer is not as large as the server made it. */
export function checkLarge(answer: string, id: number): void {
  if (answer.length < LARGE_BYTES) throw new Error(`the answer to call ${id} has only ${answer.length} characters`)
}

/** Throws when an answer is not a list of tools that has the last one of the server. */
export function checkList(answer: string, id: number): void {
  const { id: answered, result } = JSON.parse(answer) as { id?: unknown; result?: { tools?: readonly { name?: unknown }[] } }
  if (answered === id && result?.tools?.some(({ name }) => name === LAST_TOOL) === true) return
  throw new Error(`the answer to list ${id} was ${answer.slice(0, 500)}`)
}
