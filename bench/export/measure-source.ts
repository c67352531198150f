import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import type { Figure } from '../figure.ts'
import { best } from '../figure.ts'
import { startMeasured } from '../proxy/measured-process.ts'
import type { Access } from './registry-subject.ts'

interface Run {
  readonly seconds: number
  readonly rssMb: number
  readonly heapMb: number
}

/** As in the image. */
const OURS = { ...MEMORY_SETTINGS, THV_RELEASE: '1' }

/**
 * The first result of the source and its memory at rest, in turns with a client that lists, parses and keeps the same kinds. The source
 * runs with the settings of the image and gives memory back when it is idle, as a registry server does; the client without and, for
 * comparison, with both.
 */
export async function measureSource(access: Access, rounds: number): Promise<Figure[]> {
  const runs: { ours: Run[]; bare: Run[]; small: Run[] } = { ours: [], bare: [], small: [] }
  for (let round = 0; round < rounds; round++) {
    runs.bare.push(await runOf('bench/export/bare.ts', access))
    runs.ours.push(await runOf('bench/export/source.ts', access, OURS))
    runs.small.push(await runOf('bench/export/bare.ts', access, OURS))
  }
  const ours = { value: best(runs.ours.map(({ rssMb }) => rssMb)) }
  const pair = (of: (run: Run) => number) => ({ value: best(runs.ours.map(of)), baseline: best(runs.bare.map(of)) })
  return [
    { name: 'first result of the source', unit: 's', ...pair(({ seconds }) => seconds), aim: { of: 'ratio', limit: 1.5 } },
    { name: 'RSS of the source', unit: 'MB', ...pair(({ rssMb }) => rssMb), aim: { of: 'ratio', limit: 0.6 } },
    {
      name: 'the same beside a client that gives memory back too',
      unit: 'MB',
      ...ours,
      baseline: best(runs.small.map(({ rssMb }) => rssMb)),
    },
    { name: 'heap in use of the source', unit: 'MB', ...pair(({ heapMb }) => heapMb) },
  ]
}

async function runOf(script: string, { url, token, caPem }: Access, settings?: Readonly<Record<string, string>>): Promise<Run> {
  const nodeArgs = process.env['BENCH_CPU_PROF'] ? ['--cpu-prof', '--cpu-prof-dir', process.env['BENCH_CPU_PROF']] : []
  await using child = await startMeasured({ script, nodeArgs, env: { THV_SERVER: url, THV_TOKEN: token, THV_CA: caPem, ...settings } })
  const [, ms = ''] = await child.line(/^listed \d+ in (\S+) ms$/)
  if (settings) await child.line(/^collected$/)
  const { rssKb, heapKb } = await child.usage({ gc: settings === undefined })
  return { seconds: Number(ms) / 1000, rssMb: rssKb / 1024, heapMb: heapKb / 1024 }
}
