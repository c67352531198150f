import { spawnSync } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { versions } from './kubernetes-version.ts'
import { type GoModule, goModules, type ProgramName } from './programs.ts'
import { type GoBuildOptions, runGo } from './run-go.ts'

/** Builds the programs of a cluster from their Go modules. */
export interface BuildOptions extends GoBuildOptions {
  readonly programs: readonly ProgramName[]
}

export interface GoVersion {
  readonly major: number
  readonly minor: number
}

/** `workFolder` is a throw-away folder; the finished programs lie in its `bin`. */
export async function buildWithGo(workFolder: string, options: BuildOptions): Promise<void> {
  await mkdir(join(workFolder, 'bin'), { recursive: true })
  let count = 0
  for (const module of goModules) {
    const wanted = options.programs.filter((name) => module.programs[name] !== undefined)
    if (wanted.length === 0) continue
    const cwd = join(workFolder, module.name)
    await mkdir(cwd, { recursive: true })
    const step = (title: string, args: readonly string[]) => runGo(args, { ...options, title, cwd, workFolder })
    await writeModule(module, cwd, step)
    for (const name of wanted) {
      count += 1
      const title = `building ${name} (${count} of ${options.programs.length})`
      await step(title, buildArguments(module, name, join(workFolder, 'bin', name)))
    }
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
