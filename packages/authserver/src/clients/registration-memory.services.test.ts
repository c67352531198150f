import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../testing/registration-flood.ts', import.meta.url))
const LIMIT_MS = 240_000
const MIB = 1 << 20

it('100,000 registrations from as many addresses leave less than 5 MiB behind', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROGRAM, '100000'], {
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  const { accepted, grown } = JSON.parse(stdout) as { accepted: number; grown: number }
  expect(accepted).toBe(100_000)
  expect(grown).toBeLessThan(5 * MIB)
})
