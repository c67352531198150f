import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { binariesAvailability, cacheFolder, ensureBinaries, findBinaries } from './binaries.ts'
import type { BuildOptions } from './go-build.ts'
import { programSets } from './programs.ts'

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
      '/own/toolhive-ts/kubernetes/v1.34.1-etcd3.6.5-coredns1.13.1-',
    ],
    ['then XDG_CACHE_HOME', { XDG_CACHE_HOME: '/xdg', HOME: '/home/x' }, '/xdg/toolhive-ts/kubernetes/v1.34.1-etcd3.6.5-coredns1.13.1-'],
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
    expect(findBinaries('api-server', env)).toBeUndefined()
    const folder = cacheFolder(env)
    fill(folder)
    const found = findBinaries('api-server', env)
    expect(found?.folder).toBe(folder)
    expect(found?.path('kubectl')).toBe(join(folder, 'kubectl'))
    expect(binariesAvailability('api-server', env).kind).toBe('ready')
    rmSync(join(folder, 'kubectl'))
    expect(findBinaries('api-server', env)).toBeUndefined()
  })

  test('KUBEBUILDER_ASSETS wins over the cache, and is an error when incomplete', () => {
    fill(cacheFolder(env))
    const assets = join(root, 'assets')
    fill(assets)
    env['KUBEBUILDER_ASSETS'] = assets
    expect(findBinaries('api-server', env)?.folder).toBe(assets)
    rmSync(join(assets, 'etcd'))
    chmodSync(join(assets, 'kubectl'), 0o644)
    expect(() => findBinaries('api-server', env)).toThrow(/KUBEBUILDER_ASSETS names .*assets, which lacks etcd, kubectl/)
    expect(binariesAvailability('api-server', env)).toEqual({ kind: 'unavailable', reason: expect.stringContaining('lacks etcd') })
  })

  test('without Go and without binaries the reason says what to do', async () => {
    vi.stubEnv('PATH', join(root, 'empty'))
    try {
      expect(binariesAvailability('api-server', env)).toEqual({
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
    expect((await ensureBinaries({ env, build })).folder).toBe(first.folder)
    expect(build).toHaveBeenCalledTimes(1)
    expect(readdirSync(dirname(first.folder))).toEqual([basename(first.folder)])
  })

  test('two at once: one builds, the other waits and says so', async () => {
    const lines: string[] = []
    const build = vi.fn(async (folder: string, options: BuildOptions) => {
      await vi.waitFor(() => expect(lines.join()).toContain('is building them'), 10_000)
      await fakeBuild(folder, options)
    })
    const run = () => ensureBinaries({ env, build, log: (line) => lines.push(line), lock: { pollMs: 5 } })
    const [one, two] = await Promise.all([run(), run()])
    expect(one.folder).toBe(two.folder)
    expect(build).toHaveBeenCalledTimes(1)
    expect(lines.filter((line) => line.includes(`process ${process.pid}`) && line.includes('is building them'))).toHaveLength(1)
  })

  test('the remains of a dead build are removed, other versions are not', async () => {
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

  test('a bigger set builds only what the smaller one lacks, and keeps the rest', async () => {
    const build = vi.fn(fakeBuild)
    await ensureBinaries({ env, build })
    writeFileSync(join(cacheFolder(env), 'etcd'), 'kept')
    await ensureBinaries({ set: 'control-plane', env, build })
    expect(build.mock.calls.map(([, { programs }]) => programs)).toEqual([
      ['etcd', 'kube-apiserver', 'kubectl'],
      ['kube-controller-manager', 'kube-scheduler'],
    ])
    expect(readFileSync(join(cacheFolder(env), 'etcd'), 'utf8')).toBe('kept')
    expect(findBinaries('control-plane', env)?.folder).toBe(cacheFolder(env))
    expect(findBinaries('node', env)).toBeUndefined()
  })

  test('a build that forgets a program is a failure', async () => {
    const partial = async (folder: string) => fill(join(folder, 'bin'), ['etcd', 'kubectl'])
    await expect(ensureBinaries({ env, build: partial })).rejects.toThrow('did not make kube-apiserver')
    expect(findBinaries('api-server', env)).toBeUndefined()
  })
})

async function fakeBuild(workFolder: string, { programs }: BuildOptions): Promise<void> {
  fill(join(workFolder, 'bin'), programs)
}

function fill(folder: string, names: readonly string[] = programSets['api-server']): void {
  mkdirSync(folder, { recursive: true })
  for (const name of names) writeFileSync(join(folder, name), 'fake', { mode: 0o755 })
}
