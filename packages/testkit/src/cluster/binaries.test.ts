import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { binariesAvailability, cacheFolder, ensureBinaries, findBinaries } from './binaries.ts'
import { binaryNames } from './go-build.ts'

let root: string
let env: NodeJS.ProcessEnv
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'binaries-test-'))
  env = { THV_CACHE_DIR: root, PATH: process.env['PATH'] }
})
afterEach(() => rmSync(root, { recursive: true }))

describe('where binaries come from', () => {
  test.each<[string, NodeJS.ProcessEnv, string]>([
    [
      'THV_CACHE_DIR first',
      { THV_CACHE_DIR: '/own', XDG_CACHE_HOME: '/xdg', HOME: '/home/x' },
      '/own/toolhive-ts/kubernetes/v1.34.1-etcd3.6.5-',
    ],
    ['then XDG_CACHE_HOME', { XDG_CACHE_HOME: '/xdg', HOME: '/home/x' }, '/xdg/toolhive-ts/kubernetes/v1.34.1-etcd3.6.5-'],
    [
      'a relative XDG_CACHE_HOME counts as unset',
      { XDG_CACHE_HOME: 'xdg', HOME: '/home/x' },
      '/home/x/.cache/toolhive-ts/kubernetes/v1.34.1-',
    ],
    [
      'empty values count as unset',
      { THV_CACHE_DIR: '', XDG_CACHE_HOME: '', HOME: '/home/x' },
      '/home/x/.cache/toolhive-ts/kubernetes/v1.34.1-',
    ],
  ])('%s', (_, variables, start) => expect(cacheFolder(variables)).toMatch(new RegExp(`^${start}`)))

  test('the key names system and processor', () => expect(basename(cacheFolder(env))).toMatch(/-(linux|darwin)-(amd64|arm64)$/))

  test('a complete cache folder is found, an incomplete one is not', () => {
    expect(findBinaries(env)).toBeUndefined()
    const folder = cacheFolder(env)
    fill(folder)
    expect(findBinaries(env)).toEqual({
      folder,
      etcd: join(folder, 'etcd'),
      kubeApiserver: join(folder, 'kube-apiserver'),
      kubectl: join(folder, 'kubectl'),
    })
    expect(binariesAvailability(env).kind).toBe('ready')
    rmSync(join(folder, 'kubectl'))
    expect(findBinaries(env)).toBeUndefined()
  })

  test('KUBEBUILDER_ASSETS wins over the cache, and is an error when incomplete', () => {
    fill(cacheFolder(env))
    const assets = join(root, 'assets')
    fill(assets)
    env['KUBEBUILDER_ASSETS'] = assets
    expect(findBinaries(env)?.folder).toBe(assets)
    rmSync(join(assets, 'etcd'))
    chmodSync(join(assets, 'kubectl'), 0o644)
    expect(() => findBinaries(env)).toThrow(/KUBEBUILDER_ASSETS names .*assets, which lacks etcd, kubectl/)
    expect(binariesAvailability(env)).toEqual({ kind: 'unavailable', reason: expect.stringContaining('lacks etcd') })
  })

  test('without Go and without binaries the reason says what to do', async () => {
    vi.stubEnv('PATH', join(root, 'empty'))
    try {
      expect(binariesAvailability(env)).toEqual({
        kind: 'unavailable',
        reason: expect.stringMatching(/Go is not installed; install Go 1\.24.*KUBEBUILDER_ASSETS/),
      })
      await expect(ensureBinaries({ env })).rejects.toThrow(/no Kubernetes binaries: Go is not installed/)
    } finally {
      vi.unstubAllEnvs()
    }
  })
})

describe('ensureBinaries', () => {
  test('builds once; after that nothing is built', async () => {
    const build = vi.fn(fakeBuild)
    const first = await ensureBinaries({ env, build })
    expect(await ensureBinaries({ env, build })).toEqual(first)
    expect(build).toHaveBeenCalledTimes(1)
    expect(readdirSync(dirname(first.folder))).toEqual([basename(first.folder)])
  })

  test('two at once: one builds, the other waits and says so', async () => {
    const build = vi.fn(async (folder: string) => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      await fakeBuild(folder)
    })
    const lines: string[] = []
    const run = () => ensureBinaries({ env, build, log: (line) => lines.push(line), lock: { pollMs: 5 } })
    const [one, two] = await Promise.all([run(), run()])
    expect(one).toEqual(two)
    expect(build).toHaveBeenCalledTimes(1)
    expect(lines.filter((line) => line.includes(`process ${process.pid}`) && line.includes('is building them'))).toHaveLength(1)
  })

  test('what a dead build left is removed, other versions are not', async () => {
    const folder = cacheFolder(env)
    const other = join(dirname(folder), 'v1.99.0-etcd9-linux-amd64')
    for (const dead of [`${folder}.build-1-x/bin`, `${folder}.lock.1-x`, folder, other]) mkdirSync(dead, { recursive: true })
    writeFileSync(join(folder, 'etcd'), 'only one of three')
    await ensureBinaries({ env, build: fakeBuild })
    expect(readdirSync(dirname(folder)).sort()).toEqual([basename(folder), basename(other)].sort())
    expect(readFileSync(join(folder, 'etcd'), 'utf8')).toBe('fake')
  })

  test('a failed build leaves nothing that looks finished, and the next run builds again', async () => {
    const failing = async (folder: string) => {
      fill(join(folder, 'bin'), ['etcd'])
      throw new Error('compiler said no')
    }
    await expect(ensureBinaries({ env, build: failing })).rejects.toThrow('compiler said no')
    expect(readdirSync(dirname(cacheFolder(env)))).toEqual([])
    await ensureBinaries({ env, build: fakeBuild })
    expect(existsSync(cacheFolder(env))).toBe(true)
  })

  test('a build that forgets a program is a failure', async () => {
    const partial = async (folder: string) => fill(join(folder, 'bin'), ['etcd', 'kubectl'])
    await expect(ensureBinaries({ env, build: partial })).rejects.toThrow('did not make kube-apiserver')
    expect(findBinaries(env)).toBeUndefined()
  })
})

async function fakeBuild(workFolder: string): Promise<void> {
  fill(join(workFolder, 'bin'))
}

function fill(folder: string, names: readonly string[] = binaryNames): void {
  mkdirSync(folder, { recursive: true })
  for (const name of names) writeFileSync(join(folder, name), 'fake', { mode: 0o755 })
}
