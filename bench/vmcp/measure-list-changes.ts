import { ensureBundle } from '../../scripts/bundle.mjs'
import { type Figure, median } from '../figure.ts'
import type { MeasuredProcess } from '../proxy/measured-process.ts'
import { startManyServers, startVmcp, vmcpConfig } from './subjects.ts'
import { openLegacy } from './wire-session.ts'

const BACKENDS = 100
const TOOLS = 100
const SESSIONS = 100
const LIMIT_MS = 60_000
const LOOK_MS = 10

/** One backend of 100 with 100 tools each gets another tool, while 100 sessions listen. */
export async function measureListChanges({ rounds }: { readonly rounds: number }): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const servers = stack.use(await startManyServers({ THV_TOOLS: String(TOOLS) }))
  const backends = Object.fromEntries(Array.from({ length: BACKENDS }, (_, i) => [`b${i}`, servers.urlOf(i)]))
  const config = { ...vmcpConfig(backends), aggregation: { conflictResolution: 'prefix' } }
  const probe = await ensureBundle('bench/registry/stall-probe.ts')
  const vmcp = stack.use(await startVmcp(config, { nodeArgs: ['--import', probe] }))
  await until(async () => Number(await (await fetch(new URL('/streams', servers.url))).text()) >= BACKENDS)
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openLegacy(vmcp.url)))
  const heard = sessions.map(() => 0)
  const abort = new AbortController()
  stack.defer(() => abort.abort())
  for (const [i, { headers }] of sessions.entries()) {
    const stream = await fetch(vmcp.url, { headers: { accept: 'text/event-stream', ...headers }, signal: abort.signal })
    void count(stream, () => {
      heard[i] = (heard[i] ?? 0) + 1
    })
  }
  let asked = 0
  const stallMs = async () => await longestStall(vmcp.process, ++asked)
  await stallMs() // of the start
  const times = { all: [] as number[], page: [] as number[], stall: [] as number[] }
  for (let round = 0; round < rounds * 2; round++) {
    const before = [...heard]
    const backend = round + 1
    const startedAt = performance.now()
    await (await fetch(new URL(`/${backend}/change`, servers.url), { method: 'POST' })).arrayBuffer()
    await until(async () => heard.every((times, i) => times > (before[i] ?? 0)))
    times.all.push(performance.now() - startedAt)
    const listed = await sessions[0]?.toolNames()
    times.page.push(performance.now() - startedAt)
    if (listed?.includes(`b${backend}_added_1`) !== true) throw new Error('the announced list is an old one')
    times.stall.push(await stallMs())
  }
  const of = `${BACKENDS} × ${TOOLS} tools`
  return [
    { name: `a changed list to list_changed at ${SESSIONS} sessions, ${of}`, unit: 'ms', value: median(times.all), baseline: 50 },
    { name: 'the same to all pages of the new list', unit: 'ms', value: median(times.page), baseline: 50 },
    {
      ...{ name: 'longest stall of the event loop meanwhile', unit: 'ms', value: median(times.stall), baseline: 0 },
      aim: { of: 'difference', limit: 50 },
    },
  ]
}

async function longestStall(child: MeasuredProcess, asked: number): Promise<number> {
  const line = child.line(new RegExp(`^stall ${asked}: ([\\d.]+) ms`))
  process.kill(child.pid, 'SIGUSR2')
  const [, ms = ''] = await line
  return Number(ms)
}

async function count(stream: Response, onChange: () => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of stream.body ?? []) {
      const events = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) if (event.includes('notifications/tools/list_changed')) onChange()
    }
  } catch (error) {
    if (!(error instanceof DOMException)) throw error // aborted at the end
  }
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + LIMIT_MS
  while (!(await isDone())) {
    if (performance.now() > endsAt) throw new Error('it did not happen in time')
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
