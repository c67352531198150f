import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processStart } from '@thv/programs/process-identity'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { buildArguments, buildWithGo, goVersionProblem } from './go-build.ts'
import { type GoModule, goModules, kubernetesModule, type ProgramName, programSets } from './programs.ts'

describe('the module of Kubernetes', () => {
  const source = `// comment
module k8s.io/kubernetes

go 1.24.0

require (
	k8s.io/api v0.0.0
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/apiextensions-apiserver => ./staging/src/k8s.io/apiextensions-apiserver
	example.com/fork => example.com/other v1.0.0
)
`
  test('names us, points to the published libraries and requires the two programs', () => {
    expect(kubernetesModule(source)).toBe(`// comment
module kube.binaries

go 1.24.0

require (
	k8s.io/api v0.0.0
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397
)

replace (
	k8s.io/api => k8s.io/api v0.34.1
	k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.34.1
	example.com/fork => example.com/other v1.0.0
)
require k8s.io/kubernetes v1.34.1
require go.etcd.io/etcd/server/v3 v3.6.5
`)
  })
})

test('the build flags are pinned: others mean a full rebuild', () => {
  const stamps = ['gitVersion=v1.34.1', 'gitMajor=1', 'gitMinor=34'].map((stamp) => `-X k8s.io/component-base/version.${stamp}`).join(' ')
  const args = (name: ProgramName, output: string) => buildArguments(moduleOf(name), name, output)
  expect(args('kubectl', '/out/kubectl')).toEqual([
    'build',
    '-gcflags=all=-dwarf=false',
    '-ldflags',
    `-s -w ${stamps}`,
    '-o',
    '/out/kubectl',
    'k8s.io/kubernetes/cmd/kubectl',
  ])
  expect(args('etcd', '/out/etcd').at(-1)).toBe('go.etcd.io/etcd/server/v3')
  expect(args('coredns', '/out/coredns').slice(-4)).toEqual(['-s -w', '-o', '/out/coredns', '.'])
  expect(args('kubernetes-conformance', '/out/e2e').slice(0, 2)).toEqual(['test', '-c'])
})

test('each program comes from exactly one module', () => {
  for (const name of Object.values(programSets).flat())
    expect(goModules.filter((module) => module.programs[name] !== undefined)).toHaveLength(1)
})

function moduleOf(name: ProgramName): GoModule {
  const module = goModules.find((each) => each.programs[name] !== undefined)
  if (!module) throw new Error(`no module for ${name}`)
  return module
}

describe('goVersionProblem', () => {
  test.each([
    'go version go1.24 linux/amd64',
    'go version go1.26.8 darwin/arm64',
    'go version devel go1.27-abc',
    'go version go1.25rc1 linux/amd64',
    'go version go2.0 x',
  ])('fine: %s', (printed) => expect(goVersionProblem(printed)).toBeUndefined())
  test.each([
    ['go version go1.23.4 linux/amd64', 'Go 1.24 or newer is needed, 1.23 is installed'],
    ['nonsense', 'the version of Go is unknown ("nonsense")'],
  ])('a problem: %s', (printed, problem) => expect(goVersionProblem(printed)).toBe(problem))
})

describe('buildWithGo, with a script in the place of go', () => {
  let root: string
  let work: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'go-build-test-'))
    work = join(root, 'work')
    mkdirSync(join(root, 'source'))
    writeFileSync(join(root, 'source', 'go.mod'), 'module k8s.io/kubernetes\n')
    writeFileSync(join(root, 'source', 'go.sum'), 'sums\n')
  })
  afterEach(() => {
    vi.unstubAllEnvs()
    rmSync(root, { recursive: true })
  })

  test('downloads, writes the module, builds all three, says so and beats', async () => {
    fakeGo('sleep 0.1; echo "$GOFLAGS $CGO_ENABLED $GOWORK" > "$output"')
    const lines: string[] = []
    await buildWithGo(work, { programs: programSets['api-server'], log: (line) => lines.push(line), heartbeatMs: 20 })
    expect(readdirSync(join(work, 'bin')).sort()).toEqual(['etcd', 'kube-apiserver', 'kubectl'])
    expect(readFileSync(join(work, 'bin', 'etcd'), 'utf8')).toBe('-mod=mod -buildvcs=false -trimpath 0 off\n')
    expect(readFileSync(join(work, 'kubernetes', 'go.mod'), 'utf8')).toContain('module kube.binaries')
    expect(readFileSync(join(work, 'kubernetes', 'go.sum'), 'utf8')).toBe('sums\n')
    expect(lines).toContainEqual(expect.stringMatching(/^building kube-apiserver \(2 of 3\)$/))
    expect(lines).toContainEqual(expect.stringMatching(/^still building kubectl \(3 of 3\), \d+ s$/))
    expect(lines).toContainEqual(expect.stringMatching(/^done with building kubectl \(3 of 3\), \d+ s$/))
  })

  test('a program of our own is built from its sources here, one without dependencies downloads nothing', async () => {
    fakeGo('cp main.go "$output"')
    const lines: string[] = []
    await buildWithGo(work, { programs: ['coredns', 'pause'], log: (line) => lines.push(line) })
    expect(readFileSync(join(work, 'bin', 'coredns'), 'utf8')).toContain('coremain.Run()')
    expect(readFileSync(join(work, 'bin', 'pause'), 'utf8')).toContain('Wait4')
    expect(readFileSync(join(work, 'coredns', 'go.mod'), 'utf8')).toBe('module kube.coredns\nrequire github.com/coredns/coredns v1.13.1\n')
    expect(lines.filter((line) => line.startsWith('downloading'))).toEqual(['downloading the modules of coredns'])
  })

  test('a failure carries what go said', async () => {
    fakeGo('echo "undefined: x" >&2; exit 2')
    await expect(buildWithGo(work, { programs: ['etcd', 'kubectl', 'pause'], log: () => undefined })).rejects.toThrow(
      /building etcd \(1 of 3\) failed \(2\):\nundefined: x/,
    )
  })

  test('an interruption ends go and what go started', async () => {
    fakeGo(`sleep 600 & echo $! > ${root}/compiler; wait`)
    const stop = new AbortController()
    const building = buildWithGo(work, { programs: ['etcd'], log: () => undefined, signal: stop.signal })
    const outcome = expect(building).rejects.toThrow('enough')
    const compiler = join(root, 'compiler')
    await vi.waitFor(() => expect(existsSync(compiler) && readFileSync(compiler, 'utf8')).toMatch(/\d+\n/), 10_000)
    stop.abort(new Error('enough'))
    await outcome
    await vi.waitFor(() => expect(processStart(Number(readFileSync(compiler, 'utf8')))).toBeUndefined(), 10_000)
  })

  /** `build` runs for each `go build`, with the wanted file in $output. */
  function fakeGo(build: string): void {
    const script = `#!/bin/sh
if [ "$1" = mod ]; then echo '{"Dir": "${root}/source"}'; exit; fi
output=$6
${build}
`
    writeFileSync(join(root, 'go'), script, { mode: 0o755 })
    vi.stubEnv('PATH', `${root}:${process.env['PATH']}`)
  }
})
