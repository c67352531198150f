import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ensureHelm, findHelm, isNewEnough } from './helm-binary.ts'

let cache = ''
/** Without PATH no helm of the machine is found. */
const env = (extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({ THV_CACHE_DIR: cache, PATH: '', ...extra })

beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'thv-helm-'))
})
afterEach(() => rm(cache, { recursive: true, force: true }))

/** Stands in for the build; counts its calls. */
function fakeBuild(result: 'ok' | 'fails' = 'ok') {
  const calls: string[] = []
  const build = async (workFolder: string) => {
    calls.push(workFolder)
    await writeFile(join(workFolder, 'helm'), '#!/bin/sh\n')
    if (result === 'fails') throw new Error('no compiler')
    await chmod(join(workFolder, 'helm'), 0o755)
    return join(workFolder, 'helm')
  }
  return { build, calls }
}

describe('ensureHelm', () => {
  it('builds once, also for two at the same time', async () => {
    const { build, calls } = fakeBuild()
    const [first, second] = await Promise.all([ensureHelm({ env: env(), build }), ensureHelm({ env: env(), build })])
    expect(first).toBe(second)
    expect(await ensureHelm({ env: env(), build })).toBe(first)
    expect(calls).toHaveLength(1)
    expect(findHelm(env())).toBe(first)
  })

  it('leaves nothing behind when the build fails, and tries again the next time', async () => {
    await expect(ensureHelm({ env: env(), build: fakeBuild('fails').build })).rejects.toThrow('no compiler')
    expect(findHelm(env())).toBeUndefined()
    const path = await ensureHelm({ env: env(), build: fakeBuild().build })
    expect(existsSync(path)).toBe(true)
    expect(await readdir(join(path, '..'))).toHaveLength(1)
  })

  it('takes the helm that THV_HELM names, and refuses one that is not there', async () => {
    const own = join(cache, 'my-helm')
    await writeFile(own, '#!/bin/sh\n', { mode: 0o755 })
    expect(await ensureHelm({ env: env({ THV_HELM: own }) })).toBe(own)
    await expect(ensureHelm({ env: env({ THV_HELM: `${own}-missing` }) })).rejects.toThrow('which is no program')
  })
})

describe('isNewEnough', () => {
  it.each([
    ['v3.19.0', true],
    ['v3.20.1', true],
    ['v3.18.6', false],
    ['v2.17.0', false],
    ['v4.0.0', false],
    ['', false],
  ])('%s: %s', (version, expected) => {
    expect(isNewEnough(version)).toBe(expected)
  })
})
