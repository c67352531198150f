import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { goVersionProblem } from '../cluster/programs/go-build.ts'
import { ensureTraefik, findTraefik } from './traefik-binary.ts'
import { buildArguments, moduleFile, traefikGo, traefikVersion } from './traefik-build.ts'

let cache = ''
const env = (extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({ THV_CACHE_DIR: cache, PATH: '', ...extra })

beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'thv-traefik-'))
})
afterEach(() => rm(cache, { recursive: true, force: true }))

describe('ensureTraefik', () => {
  it('builds once, also for two at the same time', async () => {
    let builds = 0
    const build = async (workFolder: string) => {
      builds++
      await writeFile(join(workFolder, 'traefik'), '#!/bin/sh\n')
      await chmod(join(workFolder, 'traefik'), 0o755)
      return join(workFolder, 'traefik')
    }
    const [first, second] = await Promise.all([ensureTraefik({ env: env(), build }), ensureTraefik({ env: env(), build })])
    expect(first).toBe(second)
    expect(builds).toBe(1)
    expect(findTraefik(env())).toBe(first)
  })

  it('takes the program that THV_TRAEFIK names, and refuses one that is not there', async () => {
    const own = join(cache, 'my-traefik')
    await writeFile(own, '#!/bin/sh\n', { mode: 0o755 })
    expect(await ensureTraefik({ env: env({ THV_TRAEFIK: own }) })).toBe(own)
    await expect(ensureTraefik({ env: env({ THV_TRAEFIK: `${own}-missing` }) })).rejects.toThrow('which is no program')
  })
})

describe('the module that builds Traefik', () => {
  it('has a name of its own, requires Traefik and keeps its replacements', () => {
    const made = moduleFile('module github.com/traefik/traefik/v3\n\ngo 1.25.0\n\nreplace a => b v1.0.0\n')
    expect(made).toBe(
      `module traefik.binary\n\ngo 1.25.0\n\nreplace a => b v1.0.0\nrequire github.com/traefik/traefik/v3 ${traefikVersion}\n`,
    )
    expect(buildArguments('/out').at(-1)).toBe('github.com/traefik/traefik/v3/cmd/traefik')
  })

  it.each([
    ['go version go1.24.9 linux/amd64', 'Go 1.25 or newer is needed, 1.24 is installed'],
    ['go version go1.25.0 linux/amd64', undefined],
    ['go version go1.26.8 linux/amd64', undefined],
  ])('%s: %s', (printed, problem) => {
    expect(goVersionProblem(printed, traefikGo)).toBe(problem)
  })
})
