import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startGuard } from '../cluster/process/process-guard.ts'
import { goPlatform } from '../cluster/programs/go-build.ts'
import { versions } from '../cluster/programs/kubernetes-version.ts'

/** Its Kubernetes libraries are of the same minor version as our API server; Go 1.24 builds it. */
export const helmVersion = 'v3.19.0'

const modulePath = 'helm.sh/helm/v3'
const stepLimitMs = 20 * 60_000
const heartbeatMs = 30_000

export interface HelmBuildOptions {
  readonly log: (line: string) => void
  readonly signal?: AbortSignal | undefined
}

/** Builds helm from its Go module in a throw-away folder and returns where it lies. */
export async function buildHelm(workFolder: string, options: HelmBuildOptions): Promise<string> {
  const moduleFolder = join(workFolder, 'module')
  await mkdir(moduleFolder, { recursive: true })
  const go = (title: string, args: readonly string[]) => runGo(args, { ...options, title, workFolder, cwd: moduleFolder })
  const download = await go('downloading the modules', ['mod', 'download', '-json', `${modulePath}@${helmVersion}`])
  const source = (JSON.parse(download) as { Dir?: string }).Dir
  if (!source) throw new Error('go mod download named no folder')
  await writeFile(join(moduleFolder, 'go.mod'), moduleFile(await readFile(join(source, 'go.mod'), 'utf8')))
  await writeFile(join(moduleFolder, 'go.sum'), await readFile(join(source, 'go.sum')))
  const output = join(workFolder, 'helm')
  await go('building', buildArguments(output))
  return output
}

/** A main module of ours that takes the Kubernetes libraries of our API server: what Go compiled for that is not compiled again. */
export function moduleFile(source: string): string {
  const same = source
    .replace(/^module .*$/m, 'module helm.binary')
    .replace(/^(\s*k8s\.io\/\S+) v0\.\d+\.\d+(?=\s|$)/gm, (_, path: string) => `${path} ${versions.staging}`)
  return `${same.trimEnd()}\nrequire ${modulePath} ${helmVersion}\n`
}

/** The same flags as for the Kubernetes binaries, for the same reason. Without the stamps helm takes the cluster for a 1.20. */
export function buildArguments(output: string): string[] {
  const stamps = [
    `${modulePath}/internal/version.version=${helmVersion}`,
    ...['pkg/lint/rules', 'pkg/chartutil'].flatMap((path) => [
      `${modulePath}/${path}.k8sVersionMajor=${versions.major}`,
      `${modulePath}/${path}.k8sVersionMinor=${versions.minor}`,
    ]),
  ]
  const ldflags = ['-s', '-w', ...stamps.map((stamp) => `-X ${stamp}`)].join(' ')
  return ['build', '-gcflags=all=-dwarf=false', '-ldflags', ldflags, '-o', output, `${modulePath}/cmd/helm`]
}

interface Step extends HelmBuildOptions {
  readonly title: string
  readonly workFolder: string
  readonly cwd: string
}

/** At the lowest priority and in a process group of its own: go starts compilers, and an interruption must end them too. */
async function runGo(args: readonly string[], { log, signal, title, workFolder, cwd }: Step): Promise<string> {
  signal?.throwIfAborted()
  log(title)
  const logFile = join(workFolder, 'build.log')
  const errors = openSync(logFile, 'a')
  const guard = startGuard()
  const child = spawn('nice', ['-n', '19', 'go', ...args], {
    cwd,
    env: buildEnvironment(),
    detached: true,
    stdio: ['ignore', 'pipe', errors],
  })
  closeSync(errors)
  if (child.pid !== undefined) guard.watch(child.pid)
  const stop = () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  signal?.addEventListener('abort', stop, { once: true })
  const limit = setTimeout(stop, stepLimitMs)
  const heartbeat = setInterval(() => log(`still ${title}`), heartbeatMs)
  try {
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    const code = await new Promise<number | string | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, by) => resolve(status ?? by))
    })
    signal?.throwIfAborted()
    if (code !== 0) throw new Error(`helm: ${title} failed (${code}):\n${readFileSync(logFile, 'utf8').slice(-4000)}`)
    return Buffer.concat(chunks).toString()
  } finally {
    clearInterval(heartbeat)
    clearTimeout(limit)
    signal?.removeEventListener('abort', stop)
    if (child.pid !== undefined) guard.forget(child.pid)
    await guard.close()
  }
}

/** As for the Kubernetes binaries: neither a workspace nor the caller's own target may change what is built. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const { os, arch } = goPlatform()
  return {
    ...process.env,
    CGO_ENABLED: '0',
    GOTOOLCHAIN: 'local',
    GOGC: '400',
    GOFLAGS: '-mod=mod -buildvcs=false -trimpath',
    GOOS: os,
    GOARCH: arch,
    GOWORK: 'off',
    GO111MODULE: 'on',
  }
}
