import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Command } from '../child-process.ts'
import { isExecutable } from '../find-program.ts'
import { withInstallLock } from '../install-lock.ts'
import { installerEnvironment } from '../program-environment.ts'
import { exists, INSTALL_LIMIT_MS, type InstallOptions, type PackageId, runInstaller } from '../run-installer.ts'
import { checkUv, findUv } from './find-uv.ts'

const STAMP = 'complete'

/**
 * Installs a package of PyPI once for all processes of this machine and says where. A Python environment cannot be moved, so it is made
 * in its place, and is complete when it has its stamp. Throws `package_install_failed` or `program_missing`.
 */
export async function installPythonPackage(pkg: PackageId, options: InstallOptions): Promise<string> {
  const { signal, log, limitMs = INSTALL_LIMIT_MS, clock = systemClock } = options
  const id = idOf(pkg)
  const folder = folderOf(pkg, options)
  const stamp = join(folder, STAMP)
  if (await exists(stamp)) return folder

  const install = async () => {
    if (await exists(stamp)) return
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    const uv = await findUv(id, options)
    const folders = { UV_TOOL_DIR: join(folder, 'tools'), UV_TOOL_BIN_DIR: join(folder, 'bin') }
    const env = { ...installerEnvironment(options.env), ...uv.env, ...folders }
    const command = { file: uv.file, args: ['tool', 'install', '--no-progress', `${pkg.name}==${pkg.version}`] }
    await runInstaller(id, { command, cwd: folder, env }, options)
    await writeFile(stamp, id)
  }
  const onWait = (holder: string) => log.info(`waiting for ${holder}, which installs ${id}`)
  await withInstallLock(`${folder}.lock`, install, { limitMs, signal, clock, onWait })
  return folder
}

/** As uvx chooses: the program called like the package, or the only one. */
export async function pythonCommand(folder: string, { name }: PackageId, args: readonly string[]): Promise<Command> {
  const bin = join(folder, 'bin')
  const programs = (await readdir(bin)).sort()
  const chosen = programs.find((program) => program === name) ?? (programs.length === 1 ? programs[0] : undefined)
  if (chosen === undefined || !(await isExecutable(join(bin, chosen)))) {
    const found = programs.length === 0 ? 'it has none' : `it has ${programs.join(', ')}`
    throw new ThvError('image_invalid', `image: the package ${name} has no program to run: one called ${name} is needed, and ${found}`)
  }
  return { file: join(bin, chosen), args }
}

/** Throws `program_missing` at once when the package is not there and cannot be installed either. */
export async function checkPythonPackage(pkg: PackageId, options: Pick<InstallOptions, 'dataDir' | 'env'>): Promise<void> {
  if (!(await exists(join(folderOf(pkg, options), STAMP)))) await checkUv(idOf(pkg), options)
}

function idOf({ name, version }: PackageId): string {
  return `${name}@${version}`
}

function folderOf(pkg: PackageId, { dataDir }: Pick<InstallOptions, 'dataDir'>): string {
  return join(dataDir, 'pypi', idOf(pkg))
}
