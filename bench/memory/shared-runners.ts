import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeMessage } from '@thv/programs/shared-process/messages'
import { startMeasured } from '../proxy/measured-process.ts'
import type { State } from './states.ts'

/** One process with several runners, as `thv up --one-proxy-process` has it. */
export interface SharedRunners extends AsyncDisposable {
  readonly pid: number
  /** Resolves when the runner listens. */
  add(config: Record<string, unknown>): Promise<void>
}

export async function startShared(state: State): Promise<SharedRunners> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-'))
  const host = await startMeasured({
    script: 'apps/proxyrunner/src/main.ts',
    bundle: await state.bundle('proxyrunner'),
    args: ['host'],
    env: state.env,
    stdin: true,
  })
  let count = 0
  return {
    pid: host.pid,
    async add(config) {
      const start = ++count
      const file = join(folder, `runconfig-${start}.json`)
      await writeFile(file, JSON.stringify({ schema_version: 'v0.1.0', host: '127.0.0.1', port: 0, ...config }))
      host.send(encodeMessage({ start, args: ['run', '--config', file], env: {}, cwd: folder }).trim())
      await host.line(new RegExp(`"output":${start},.* is served at `))
    },
    async [Symbol.asyncDispose]() {
      await host.stop()
      await rm(folder, { recursive: true })
    },
  }
}
