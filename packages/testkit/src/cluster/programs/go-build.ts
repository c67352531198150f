import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tail } from '../process/daemon.ts'
import { type ProcessGuard, startGuard } from '../process/process-guard.ts'
import { versions } from './kubernetes-version.ts'
import { type GoModule, goModules, type ProgramName } from './programs.ts'

/** Builds the programs of a cluster from their Go modules. */
export interface BuildOptions {
  readonly programs: readonly ProgramName[]
  readonly log: (line: string) => void
  readonly signal?: AbortSignal | undefined
  /** A line so often while nothing else happens: a silent CI job may be taken for a hung one. */
  readonly heartbeatMs?: number
}

export interface GoVersion {
  readonly major: number
  readonly minor: number
}

const stepLimitMs = 40 * 60_000

/** `workFolder` is a throw-away folder; the finished programs lie in its `bin`. */
export async function buildWithGo(workFolder: string, options: BuildOptions): Promise<void> {
  await mkdir(join(workFolder, 'bin'), { recursive: true })
  const guard = startGuard()
  let count = 0
  try {
    for (const module of goModules) {
      const wanted = options.programs.filter((name) => module.programs[name] !== undefined)
      if (wanted.length === 0) continue
      const cwd = join(workFolder, module.name)
      await mkdir(cwd, { recursive: true })
      const step = (title: string, args: readonly string[]) => runStep({ ...options, title, args, cwd, workFolder, guard })
      await writeModule(module, cwd, step)
      for (const name of wanted) {
        count += 1
        const title = `building ${name} (${count} of ${options.programs.length})`
        await step(title, buildArguments(module, name, join(workFolder, 'bin', name)))
      }
    }
  } finally {
    await guard.close()
  }
}

async function writeModule(
  module: GoModule,
  cwd: string,
  step: (title: string, args: readonly string[]) => Promise<string>,
): Promise<void> {
  let goMod = ''
  if (module.from !== undefined) {
    const download = await step(`downloading the modules of ${module.name}`, ['mod', 'download', '-json', module.from])
    const source = sourceFolder(download)
    goMod = await readFile(join(source, 'go.mod'), 'utf8')
    await writeFile(join(cwd, 'go.sum'), await readFile(join(source, 'go.sum')))
  }
  await writeFile(join(cwd, 'go.mod'), module.goMod(goMod))
  if (module.sources !== undefined) await cp(fileURLToPath(new URL(module.sources, import.meta.url)), cwd, { recursive: true })
}

/** Other flags than these make Go rebuild everything. */
export function buildArguments(module: GoModule, name: ProgramName, output: string): string[] {
  const ldflags = ['-s', '-w', ...(module.stamps ?? []).map((stamp) => `-X ${stamp}`)].join(' ')
  const action = module.tests?.includes(name) ? ['test', '-c'] : ['build']
  return [...action, '-gcflags=all=-dwarf=false', '-ldflags', ldflags, '-o', output, module.programs[name] ?? name]
}

function buildEnvironment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    CGO_ENABLED: '0',
    GOTOOLCHAIN: 'local',
    GOGC: '400',
    GOFLAGS: '-mod=mod -buildvcs=false -trimpath',
    // The caller's own Go settings must neither cross-compile nor pull in a workspace.
    GOOS: goPlatform().os,
    GOARCH: goPlatform().arch,
    GOWORK: 'off',
    GO111MODULE: 'on',
  }
}

export function goPlatform(): { os: string; arch: string } {
  return { os: process.platform === 'win32' ? 'windows' : process.platform, arch: process.arch === 'x64' ? 'amd64' : process.arch }
}

/** Why Go cannot be used here, or undefined when it can. */
export function goProblem(needed: GoVersion = versions.go): string | undefined {
  const go = spawnSync('go', ['version'], { encoding: 'utf8', env: { ...process.env, GOTOOLCHAIN: 'local' }, timeout: 20_000 })
  if (go.error || go.status !== 0) return 'Go is not installed'
  return goVersionProblem(go.stdout, needed)
}

/** Takes what `go version` prints: "go version go1.26.8 linux/amd64", also "go1.25rc1" and "devel go1.27-…". */
export function goVersionProblem(printed: string, needed: GoVersion = versions.go): string | undefined {
  const found = /\bgo(\d+)\.(\d+)/.exec(printed)
  if (!found) return `the version of Go is unknown ("${printed.trim()}")`
  const [major, minor] = [Number(found[1]), Number(found[2])]
  const enough = major > needed.major || (major === needed.major && minor >= needed.minor)
  return enough ? undefined : `Go ${needed.major}.${needed.minor} or newer is needed, ${major}.${minor} is installed`
}

function sourceFolder(download: string): string {
  const folder = (JSON.parse(download) as { Dir?: string }).Dir
  if (!folder) throw new Error('go mod download named no folder')
  return folder
}

interface Step extends BuildOptions {
  readonly title: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly workFolder: string
  readonly guard: ProcessGuard
}

async function runStep(step: Step): Promise<string> {
  step.signal?.throwIfAborted()
  const begin = performance.now()
  const seconds = () => Math.round((performance.now() - begin) / 1000)
  step.log(step.title)
  const heartbeat = setInterval(() => step.log(`still ${step.title}, ${seconds()} s`), step.heartbeatMs ?? 30_000)
  try {
    const output = await runGo(step)
    step.log(`done with ${step.title}, ${seconds()} s`)
    return output
  } finally {
    clearInterval(heartbeat)
  }
}

/** Runs go in a process group of its own: go starts compilers, and an interruption must end them too. */
async function runGo({ args, cwd, workFolder, guard, signal, title }: Step): Promise<string> {
  const logFile = join(workFolder, 'build.log')
  const log = openSync(logFile, 'a')
  const child = spawn('go', args, { cwd, env: buildEnvironment(), detached: true, stdio: ['ignore', 'pipe', log] })
  closeSync(log)
  if (child.pid !== undefined) guard.watch(child.pid)
  const stop = () => endGroup(child)
  signal?.addEventListener('abort', stop, { once: true })
  const limit = setTimeout(stop, stepLimitMs)
  try {
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    const code = await new Promise<number | string | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, by) => resolve(status ?? by))
    })
    signal?.throwIfAborted()
    if (code !== 0) throw new Error(`${title} failed (${code}):\n${tail(logFile, 30)}`)
    return Buffer.concat(chunks).toString()
  } finally {
    clearTimeout(limit)
    signal?.removeEventListener('abort', stop)
    if (child.pid !== undefined) guard.forget(child.pid)
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
}
