import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { type PodPlace, podReadyMs } from './pod-ready.ts'

/** As users start it: it says itself where its compiled code is kept. */
const program = fileURLToPath(new URL('../../apps/cli/bin/thv.js', import.meta.url))

export interface PlatformFigures {
  /** `thv up` without servers, on an empty folder, until it says that it runs. */
  readonly emptyStartSeconds: number
  /** Of the platform's own process, some seconds later. */
  readonly idleMb: number
  readonly podReadyMs: number
  /** The quick start for the second time, until a tool of the last server has answered. */
  readonly secondCallSeconds: number
  /** All processes of the quick start: what they hold, each shared page counted once (PSS), and counted for each (RSS). */
  readonly quickStartPssMb: number
  readonly quickStartRssMb: number
}

export async function measurePlatform(log: (line: string) => void): Promise<PlatformFigures> {
  for (const app of ['cli', 'operator', 'proxyrunner', 'registry']) await ensureBundle(`apps/${app}/src/main.ts`)
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-platform-'))
  try {
    log('thv up, empty …')
    const empty = await up(join(folder, 'empty'), ['--no-examples'])
    await sleep(3_000)
    const idleMb = (await memoryOf([empty.pid])).rssMb
    const container = { image: 'exec:///bin/sleep', args: ['600'] }
    const ready = await podReadyMs({ ...(await accessOf(join(folder, 'empty'))), container })
    await empty.stop()
    log('the quick start, twice …')
    const first = await up(join(folder, 'quick'), [])
    await first.stop()
    const second = await up(join(folder, 'quick'), [])
    const urls = [...second.output.matchAll(/http:\/\/127[\d.]+:\d+\/mcp(?=\s)/g)].map(([url]) => url)
    if (urls.length < 2) throw new Error(`the quick start named no two servers:\n${second.output}`)
    await callTool(urls[0] ?? '', 'echo')
    await callTool(urls[1] ?? '', 'say')
    const secondCallSeconds = (performance.now() - second.started) / 1000
    const memory = await memoryOf(await familyOf(second.pid))
    await second.stop()
    return {
      emptyStartSeconds: empty.seconds,
      idleMb,
      podReadyMs: ready,
      secondCallSeconds,
      quickStartPssMb: memory.pssMb,
      quickStartRssMb: memory.rssMb,
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

interface RunningUp {
  readonly pid: number
  readonly started: number
  readonly seconds: number
  readonly output: string
  stop(): Promise<void>
}

async function up(dataDir: string, args: readonly string[]): Promise<RunningUp> {
  const started = performance.now()
  const child = spawn(process.execPath, [program, 'up', '--data-dir', dataDir, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
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

async function accessOf(dataDir: string): Promise<Omit<PodPlace, 'container'>> {
  const text = await readFile(join(dataDir, 'kubeconfig'), 'utf8')
  const field = (name: string) => new RegExp(`"?${name}"?:\\s*"?([^"\\s]+)`).exec(text)?.[1] ?? ''
  const caPem = Buffer.from(field('certificate-authority-data'), 'base64').toString()
  return { url: field('server'), caPem, adminToken: field('token') }
}

async function callTool(url: string, tool: string): Promise<void> {
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
  if (!answer.text.includes('hello')) throw new Error(`${tool} at ${url} answered ${answer.text.slice(0, 500)}`)
}

/** A process and all that came from it, also what is in groups and sessions of its own. */
async function familyOf(pid: number): Promise<number[]> {
  const parents = new Map<number, number>()
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') // it may have ended meanwhile
    const parent = Number(/\) \S (\d+)/.exec(stat)?.[1])
    if (parent > 0) parents.set(Number(name), parent)
  }
  const isOurs = (each: number): boolean => each === pid || (parents.has(each) && isOurs(parents.get(each) ?? 0))
  return [...parents.keys()].filter(isOurs)
}

async function memoryOf(pids: readonly number[]): Promise<{ pssMb: number; rssMb: number }> {
  const maps = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')))
  const sum = (name: string) =>
    maps.reduce((all, text) => all + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0), 0) / 1024
  return { pssMb: sum('Pss'), rssMb: sum('Rss') }
}
