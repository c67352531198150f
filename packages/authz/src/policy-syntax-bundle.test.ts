import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ensureBundle } from '../../../scripts/bundle.mjs'

it('works from a bundle, which does not hold the engine but finds it', async () => {
  const bundle: string = await ensureBundle('packages/authz/src/testing/check-one.ts')
  const run = async (policy: string) => JSON.parse((await promisify(execFile)(process.execPath, [bundle, policy])).stdout)
  expect(await run('permit(principal, action, resource);')).toEqual([])
  expect(await run('permit(')).toEqual([{ path: 'policies[0]', message: expect.stringContaining('unexpected end of input') }])
  expect(await readFile(bundle, 'utf8')).not.toContain('WebAssembly')
})
