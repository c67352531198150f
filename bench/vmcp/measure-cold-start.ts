import { type Figure, median } from '../figure.ts'
import { startManyServers, startVmcp, vmcpConfig } from './subjects.ts'
import { openLegacy } from './wire-session.ts'

const BACKENDS = 20
const SLOWEST_MS = 300
/** Of the slowest backend. */
const LAST_TOOL = 'tool_9'

/** From the moment that a virtual server which has just started takes requests until a client has the whole list, against its slowest backend alone. */
export async function measureColdStart({ rounds }: { readonly rounds: number }): Promise<Figure[]> {
  await using servers = await startManyServers({ THV_TOOLS: '10', THV_SLOW_MS: String(SLOWEST_MS) })
  const backends = Object.fromEntries(Array.from({ length: BACKENDS }, (_, i) => [`b${i}`, servers.urlOf(i)]))
  const config = { ...vmcpConfig(backends), aggregation: { conflictResolution: 'prefix' } }
  const times = { slowest: [] as number[], vmcp: [] as number[], lists: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    times.slowest.push((await untilListed(servers.urlOf(0), LAST_TOOL)).ms)
    await using vmcp = await startVmcp(config, { isReady: false })
    const { ms, lists } = await untilListed(vmcp.url, `b0_${LAST_TOOL}`)
    times.vmcp.push(ms)
    times.lists.push(lists)
  }
  const slowest = median(times.slowest)
  return [
    {
      ...{ name: `cold start to a full tools/list, ${BACKENDS} backends, one of ${SLOWEST_MS} ms`, unit: 'ms' },
      ...{ value: median(times.vmcp), baseline: slowest, aim: { of: 'ratio', limit: 1.5 } },
    },
    { name: 'lists asked for until it was full', unit: '', value: median(times.lists), baseline: 1 },
  ]
}

const MAX_LISTS = 100

async function untilListed(url: string, tool: string): Promise<{ readonly ms: number; readonly lists: number }> {
  const startedAt = performance.now()
  const session = await openLegacy(url)
  for (let lists = 1; lists <= MAX_LISTS; lists++) {
    if (!(await session.toolNames()).includes(tool)) continue
    const ms = performance.now() - startedAt
    await session.end()
    return { ms, lists }
  }
  throw new Error(`${MAX_LISTS} lists have no ${tool}`)
}
