import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))

export interface RunningUp {
  readonly pid: number
  readonly started: number
  readonly seconds: number
  readonly output: string
  stop(): Promise<void>
}

/** `thv up`, as users start it: it says itself where its compiled code is kept. Resolves when it says that it runs. */
export async function runUp(dataDir: string, args: readonly string[], root = REPOSITORY): Promise<RunningUp> {
  const started = performance.now()
  const child = spawn(process.execPath, [join(root, 'apps/cli/bin/thv.js'), 'up', '--data-dir', dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const ready = new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes('Ctrl-C stops it')) resolve()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', (code) => reject(new Error(`thv up ended with ${code}:\n${output}`)))
  })
  await ready
  const stop = async () => {
    const gone = once(child, 'exit')
    child.kill('SIGINT')
    await gone
  }
  return { pid: child.pid ?? -1, started, seconds: (performance.now() - started) / 1000, output, stop }
}

/** Calls a tool of both servers, at the addresses in the table that ends the start. */
export async function callQuickStart(running: RunningUp): Promise<void> {
  await callTool(urlOf(running, 'everything'), 'echo')
  await callTool(urlOf(running, 'everything-http'), 'say')
}

/** Calls a tool of each backend of the virtual server. One that was not there when it was asked first is asked again after up to 30 seconds. */
export async function callVirtualServer(running: RunningUp): Promise<void> {
  const url = urlOf(running, 'all-in-one')
  const endsAt = performance.now() + LISTED_WITHIN_MS
  for (const [tool, expected] of TOOLS_OF_ALL) {
    while (
      !(await callTool(url, tool, expected).then(
        () => true,
        (error: unknown) => (performance.now() < endsAt ? false : Promise.reject(error)),
      ))
    )
      await sleep(1_000)
  }
}

const LISTED_WITHIN_MS = 60_000
const TOOLS_OF_ALL = [
  ['everything_echo', 'hello'],
  ['everything-http_say', 'hello'],
  ['platform-tools_list_servers', 'everything-http'],
] as const

function urlOf({ output }: RunningUp, name: string): string {
  const [, url] = new RegExp(`^ {2}${name} +(http://127[\\d.]+:\\d+/mcp)$`, 'm').exec(output) ?? []
  if (url === undefined) throw new Error(`the quick start named no server ${name}:\n${output}`)
  return url
}

async function callTool(url: string, tool: string, expected = 'hello'): Promise<void> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const post = async (body: object, session?: string) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, ...(session !== undefined && { 'mcp-session-id': session }) },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      signal: AbortSignal.timeout(30_000),
    })
    return { session: response.headers.get('mcp-session-id') ?? undefined, text: await response.text() }
  }
  const clientInfo = { name: 'bench', version: '1' }
  const opened = await post({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
  await post({ method: 'notifications/initialized' }, opened.session)
  const answer = await post({ id: 2, method: 'tools/call', params: { name: tool, arguments: { message: 'hello' } } }, opened.session)
  if (!answer.text.includes(expected)) throw new Error(`${tool} at ${url} answered ${answer.text.slice(0, 500)}`)
}
