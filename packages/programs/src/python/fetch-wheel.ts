import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import type { Command } from '../child-process.ts'
import { findProgram } from '../find-program.ts'
import { type Env, installerEnvironment } from '../program-environment.ts'
import { type InstallOptions, runInstaller } from '../run-installer.ts'
import { download } from './download.ts'
import type { PackageIndexes } from './package-indexes.ts'
import type { UvRelease } from './uv-release.ts'

const MAX_PAGE = 64 << 20
const MAX_WHEEL = 256 << 20

/** pip of this machine, as a command that subcommands are added to. */
export async function findPip(env: Env): Promise<Command | undefined> {
  const pip = await findProgram(['pip3', 'pip'], env['PATH'])
  return pip === undefined ? undefined : { file: pip, args: [] }
}

export async function wheelFromPip(pip: Command, { version, accepted }: UvRelease, options: InstallOptions): Promise<Buffer> {
  const folder = join(options.dataDir, 'uv', `.pip-${process.pid}`)
  const args = ['download', '--no-deps', '--only-binary', ':all:', '--disable-pip-version-check', '--no-input', '--progress-bar', 'off']
  const env = { ...installerEnvironment(options.env), PIP_REQUIRE_VIRTUALENV: 'false' } // a download installs nothing
  const command = { file: pip.file, args: [...pip.args, ...args, '--dest', folder, `uv==${version}`] }
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await runInstaller(`uv@${version}`, { command, cwd: folder, env }, options)
    const wheel = (await readdir(folder)).find((name) => name.startsWith(`uv-${version}-`) && name.endsWith('.whl'))
    if (wheel === undefined) throw new ThvError('package_install_failed', 'pip downloaded no wheel')
    return checked(await readFile(join(folder, wheel)), accepted)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The first index that has the file. Rejects with the reasons of all. */
export async function wheelFromIndexes({ urls, caFile }: PackageIndexes, release: UvRelease, options: InstallOptions): Promise<Buffer> {
  const { file, accepted } = release
  const { env, signal } = options
  if (file === undefined) throw new ThvError('package_install_failed', `uv has no build for ${process.platform} on ${process.arch}`)
  const reasons: unknown[] = []
  for (const index of urls) {
    try {
      const page = new URL(index)
      page.pathname = `${page.pathname.replace(/\/+$/, '')}/uv/`
      const accept = 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.1'
      const { url, body } = await download(page.href, { env, caFile, accept, limitBytes: MAX_PAGE, signal })
      const link = linkTo(file, body.toString('utf8'))
      if (link === undefined) throw new ThvError('package_install_failed', `${page.host} has no ${file}`)
      const target = new URL(link, url)
      if (target.host === page.host && target.username === '') Object.assign(target, { username: page.username, password: page.password })
      const wheel = await download(target.href, { env, caFile, accept: '*/*', limitBytes: MAX_WHEEL, signal })
      return checked(wheel.body, accepted)
    } catch (error) {
      signal.throwIfAborted()
      reasons.push(error)
    }
  }
  if (reasons.length === 1) throw reasons[0]
  throw new AggregateError(reasons, 'no index has it')
}

/** From a page in the JSON of PEP 691 or the HTML of PEP 503. */
function linkTo(file: string, page: string): string | undefined {
  if (page.trimStart().startsWith('{')) {
    const { files = [] } = JSON.parse(page) as { files?: { filename?: string; url?: string }[] }
    return files.find(({ filename }) => filename === file)?.url
  }
  for (const [, quoted = ''] of page.matchAll(/<a\s[^>]*?href\s*=\s*["']([^"']+)["']/gi)) {
    const href = quoted.replaceAll('&amp;', '&')
    if (href.replace(/[#?].*$/, '').endsWith(`/${file}`) || href.replace(/[#?].*$/, '') === file) return href
  }
  return undefined
}

function checked(wheel: Buffer, accepted: ReadonlySet<string>): Buffer {
  const sha256 = createHash('sha256').update(wheel).digest('hex')
  if (accepted.has(sha256)) return wheel
  throw new ThvError('package_install_failed', `the downloaded wheel is not the published one (SHA-256 ${sha256}); it was not used`)
}
