import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { renderColumns } from '../figure.ts'
import { burst } from '../proxy/burst.ts'
import { startLoadGenerator } from '../proxy/load-generator.ts'
import { httpConfig, startLeanHttp, startRunner } from '../proxy/subjects.ts'
import { startBenchProvider } from './provider.ts'
import { variantsOf } from './variants.ts'

/*
 * node bench/chain/memory-profile.ts [NAME …]: where the memory of a runner with middleware is, one after the other: when it is ready, after
 * calls in both eras, and after the collection that it makes itself when it is quiet. In megabytes.
 */

const CALLS = Number(process.env['BENCH_CALLS'] ?? '20000')
const MB = 1_024

await using stack = new AsyncDisposableStack()
const provider = stack.use(await startBenchProvider())
const folder = await mkdtemp(join(tmpdir(), 'thv-bench-chain-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const load = stack.use(await startLoadGenerator())
const backend = stack.use(await startLeanHttp())
const variants = [{ name: 'no middleware', config: {} }, ...variantsOf({ provider, redis: undefined, folder })]
const wanted = process.argv.slice(2)
const rows = [['variant', 'state', 'RSS', 'heap in use', 'heap committed', 'buffers', 'malloc', 'other anonymous', 'files']]
for (const { name, config } of variants) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  await using runner = await startRunner({ ...httpConfig(backend.url), ...config }, { env: { ...MEMORY_SETTINGS } })
  const target = { url: runner.url, headers: ['authorization', `Bearer ${provider.token('bench')}`] }
  const row = async (state: string, options: { gc?: boolean; released?: boolean } = {}) => {
    const { rssKb, heapKb, committedKb, externalKb } = await runner.process.usage(options)
    const maps = await mapsOf(runner.process.pid)
    const cells = [rssKb, heapKb, committedKb, externalKb, maps.malloc, maps.anonymous - committedKb, maps.files]
    rows.push([name, state, ...cells.map((kb) => (kb / MB).toFixed(1))])
  }
  await row('ready')
  for (const era of ['legacy', 'modern'] as const)
    await burst(load, { target, counted: runner.process, era, sessions: 64, tool: 'echo', durationMs: 400, minCalls: CALLS / 2 })
  await row('after the load')
  await row('collected', { gc: true })
  await row('released', { released: true })
}
console.log(renderColumns(rows, 2))

/** Resident kilobytes of the main malloc arena, of anonymous mappings and of files. */
async function mapsOf(pid: number): Promise<{ malloc: number; anonymous: number; files: number }> {
  const found = { malloc: 0, anonymous: 0, files: 0 }
  const text = await readFile(`/proc/${pid}/smaps`, 'utf8')
  for (const [, name = '', kb] of text.matchAll(/^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)\n(?:.*\n)*?Rss: +(\d+) kB/gm)) {
    if (name === '[heap]') found.malloc += Number(kb)
    else if (name.startsWith('/')) found.files += Number(kb)
    else found.anonymous += Number(kb)
  }
  return found
}
