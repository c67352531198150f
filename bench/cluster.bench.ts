import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startNode } from '@thv/testkit/cluster/node/node'
import { nodeProblem } from '@thv/testkit/cluster/node/node-packages'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { fixtureImage, writeFixtureImage } from '@thv/testkit/image/fixture-image'
import { type Loads, runLoad } from './cluster/api-load.ts'
import { measurePlatform } from './cluster/platform.ts'
import { podReadyMs } from './cluster/pod-ready.ts'
import { measureSameUser } from './cluster/same-user.ts'
import { type Subject, startOurs, startReal } from './cluster/subjects.ts'
import type { Figure } from './figure.ts'

/*
 * The embedded API server beside the real one with etcd: the same requests by the same client, one after the other in one run. Ours
 * survives the death of its process and not a loss of power; so the real one is measured without fsync, which is the same promise,
 * and for information with it. Then the platform as a user starts it.
 */

const SCALE = Number(process.env['BENCH_SCALE'] ?? 1)
const LOADS: Loads = { writes: 3_000 * SCALE, objects: 10_000 * SCALE, watchers: Math.ceil(100 * SCALE), fanOutWrites: 200 }

type Log = (line: string) => void

export async function run(log: Log): Promise<Figure[]> {
  await ensureBinaries({ log })
  const ours = await measure(() => startOurs(), log)
  const real = await measure(() => startReal({ fsync: false }), log)
  const safe = await measure(() => startReal({ fsync: true }), log)
  const platform = await measurePlatform(log)
  const realPodMs = await realPodReady(log)
  const sameUser = await measureSameUser(log)
  const ahead = { of: 'ratio', limit: 1 } as const
  const notWorse = { of: 'ratio', limit: 2 } as const
  return [
    { name: 'API server, start to ready', unit: 's', value: ours.startSeconds, baseline: real.startSeconds, aim: ahead },
    { name: 'API server ready, over 0', unit: 's', value: ours.startSeconds, baseline: 0, aim: { of: 'difference', limit: 1 } },
    { name: 'memory, idle', unit: 'MB', value: ours.idleMb, baseline: real.idleMb, aim: ahead },
    { name: 'memory, idle, over 0', unit: 'MB', value: ours.idleMb, baseline: 0, aim: { of: 'difference', limit: 150 } },
    {
      name: 'time per write, etcd without fsync',
      unit: 'ms',
      value: 1e3 / ours.writesPerSecond,
      baseline: 1e3 / real.writesPerSecond,
      aim: ahead,
    },
    { name: 'time per write, etcd with fsync', unit: 'ms', value: 1e3 / ours.writesPerSecond, baseline: 1e3 / safe.writesPerSecond },
    { name: 'p99 of a write, 16 at a time', unit: 'ms', value: ours.writeP99Ms, baseline: real.writeP99Ms, aim: ahead },
    { name: `list of ${LOADS.objects} objects, at once`, unit: 'ms', value: ours.listMs, baseline: real.listMs, aim: notWorse },
    { name: `list of ${LOADS.objects} objects, in pages`, unit: 'ms', value: ours.pagedListMs, baseline: real.pagedListMs, aim: notWorse },
    {
      name: `${LOADS.fanOutWrites} events to ${LOADS.watchers} watchers`,
      unit: 'ms',
      value: ours.fanOutMs,
      baseline: real.fanOutMs,
      aim: notWorse,
    },
    { name: 'memory after all that', unit: 'MB', value: ours.loadedMb, baseline: real.loadedMb, aim: ahead },
    ...(realPodMs === undefined
      ? []
      : [{ name: 'pod created to Ready', unit: 'ms', value: platform.podReadyMs, baseline: realPodMs, aim: notWorse } as const]),
    { name: 'thv up, empty, to ready', unit: 's', value: platform.emptyStartSeconds, baseline: real.startSeconds, aim: ahead },
    {
      name: 'memory of the platform, idle, over 0',
      unit: 'MB',
      value: platform.idleMb,
      baseline: 0,
      aim: { of: 'difference', limit: 150 },
    },
    {
      name: 'second quick start to tool calls, over 0',
      unit: 's',
      value: platform.secondCallSeconds,
      baseline: 0,
      aim: { of: 'difference', limit: 5 },
    },
    {
      name: 'memory of the quick start (PSS), over 0',
      unit: 'MB',
      value: platform.quickStartPssMb,
      baseline: 0,
      aim: { of: 'difference', limit: 500 },
    },
    { name: 'memory of the quick start (sum of RSS)', unit: 'MB', value: platform.quickStartRssMb, baseline: 0 },
    ...sameUser,
  ]
}

async function measure(start: () => Promise<Subject>, log: Log) {
  await using subject = await start()
  log(`${subject.name}: ready after ${subject.startSeconds.toFixed(2)} s; the load …`)
  const result = await runLoad(subject, LOADS)
  log(`${subject.name}: ${result.writesPerSecond.toFixed(0)} writes/s`)
  return { startSeconds: subject.startSeconds, ...result }
}

/** Needs root: where there is no node there is nothing to compare with. */
async function realPodReady(log: Log): Promise<number | undefined> {
  const problem = nodeProblem()
  if (problem !== undefined) {
    log(`no pod on a real node: ${problem}`)
    return undefined
  }
  log('a pod on a real node …')
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-image-'))
  try {
    await writeFixtureImage(join(folder, 'image.tar'))
    await using node = await startNode({ log })
    await node.importImage(join(folder, 'image.tar'))
    return await podReadyMs({ ...node, container: { image: fixtureImage, command: ['node', '-e', 'setInterval(() => {}, 1e6)'] } })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
