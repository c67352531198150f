import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { familyOf, memoryOf } from '../memory/process-memory.ts'
import { type PodPlace, podReadyMs } from './pod-ready.ts'
import { callQuickStart, runUp } from './up.ts'

export interface PlatformFigures {
  /** `thv up` without servers, on an empty folder and with compiled programs, until it says that it runs. */
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
  for (const app of ['cli', 'operator', 'proxyrunner', 'registry', 'vmcp']) await ensureBundle(`apps/${app}/src/main.ts`)
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-platform-'))
  try {
    // The first start after a build compiles its programs and keeps the result; what it is compared with is compiled already.
    const compiling = await runUp(join(folder, 'compiling'), ['--no-examples'])
    await compiling.stop()
    log('thv up, empty …')
    const empty = await runUp(join(folder, 'empty'), ['--no-examples'])
    await sleep(3_000)
    const idleMb = (await memoryOf([empty.pid])).rssMb
    const container = { image: 'exec:///bin/sleep', args: ['600'] }
    const ready = await podReadyMs({ ...(await accessOf(join(folder, 'empty'))), container })
    await empty.stop()
    log('the quick start, twice …')
    const first = await runUp(join(folder, 'quick'), [])
    await first.stop()
    const second = await runUp(join(folder, 'quick'), [])
    await callQuickStart(second)
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

async function accessOf(dataDir: string): Promise<Omit<PodPlace, 'container'>> {
  const text = await readFile(join(dataDir, 'kubeconfig'), 'utf8')
  const field = (name: string) => new RegExp(`"?${name}"?:\\s*"?([^"\\s]+)`).exec(text)?.[1] ?? ''
  const caPem = Buffer.from(field('certificate-authority-data'), 'base64').toString()
  return { url: field('server'), caPem, adminToken: field('token') }
}
