import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('../testing/registration-flood.ts', import.meta.url))
/** On a busy machine: it takes some seconds of CPU. */
const LIMIT_MS = 600_000
const MOST = 5 << 20

it(
  '100,000 registrations from as many addresses, and 100,000 that one address is refused, make the process grow by less than 5 MiB',
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', PROGRAM, '100000', String(MOST)], {
      timeout: LIMIT_MS - 10_000,
      killSignal: 'SIGKILL',
      env: { ...process.env, ...MEMORY_SETTINGS },
    })
    const { accepted, refused, rss, heap } = JSON.parse(stdout) as Record<'accepted' | 'refused' | 'rss' | 'heap', number>
    // The one address gets a registration each second.
    expect(accepted).toBeGreaterThanOrEqual(100_000)
    expect(accepted + refused).toBe(200_000)
    expect(refused).toBeGreaterThan(90_000)
    expect({ rss, heap }).toEqual({
      rss: expect.toSatisfy((bytes: number) => bytes < MOST),
      heap: expect.toSatisfy((bytes: number) => bytes < MOST),
    })
  },
  LIMIT_MS,
)
