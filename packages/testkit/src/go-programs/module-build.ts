import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type GoBuildOptions, runGo } from '../cluster/programs/run-go.ts'

export interface ModuleProgram {
  readonly name: string
  /** Such as `helm.sh/helm/v3`. */
  readonly module: string
  readonly version: string
  /** The go.mod of our main module, made of that of the program. */
  readonly goMod: (source: string) => string
  readonly buildArguments: (output: string) => readonly string[]
}

/** Builds a program from its Go module, with the versions that it pins, in a throw-away folder; returns where it lies. */
export async function buildFromModule(program: ModuleProgram, workFolder: string, options: GoBuildOptions): Promise<string> {
  const moduleFolder = join(workFolder, 'module')
  await mkdir(moduleFolder, { recursive: true })
  const go = (title: string, args: readonly string[]) =>
    runGo(args, { ...options, title: `${title} (${program.name})`, isNice: true, workFolder, cwd: moduleFolder })
  const download = await go('downloading the modules', ['mod', 'download', '-json', `${program.module}@${program.version}`])
  const source = (JSON.parse(download) as { Dir?: string }).Dir
  if (!source) throw new Error('go mod download named no folder')
  await writeFile(join(moduleFolder, 'go.mod'), program.goMod(await readFile(join(source, 'go.mod'), 'utf8')))
  await writeFile(join(moduleFolder, 'go.sum'), await readFile(join(source, 'go.sum')))
  const output = join(workFolder, program.name)
  await go('building', program.buildArguments(output))
  return output
}
