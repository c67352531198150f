import { readFile } from 'node:fs/promises'
import { devNull } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Env } from '../program-environment.ts'

export interface PackageIndexes {
  /** Addresses of simple indexes (PEP 503), as the user's configuration names them. They may hold credentials. */
  readonly urls: readonly string[]
  /** True when pip's settings name them and uv's do not. */
  readonly onlyPip: boolean
  /** A file with certificates to trust besides. */
  readonly caFile: string | undefined
}

/** Indexes from the variables and configuration files of uv and pip; uv's come first. Unreadable files count as absent. */
export async function packageIndexes(env: Env, read: (path: string) => Promise<string> = readText): Promise<PackageIndexes> {
  const files = async (paths: readonly (string | undefined)[]) =>
    (await Promise.all(paths.filter((path) => path !== undefined).map((path) => read(path).catch(() => '')))).join('\n')
  const { HOME: home, XDG_CONFIG_HOME: xdg } = env
  const config = xdg && isAbsolute(xdg) ? xdg : home && join(home, '.config')
  const below = (folder: string | undefined, path: string) => folder && join(folder, path)
  const uvFiles = env['UV_CONFIG_FILE'] ? [env['UV_CONFIG_FILE']] : [below(config, 'uv/uv.toml'), '/etc/xdg/uv/uv.toml', '/etc/uv/uv.toml']
  const pipFiles = [
    env['PIP_CONFIG_FILE'],
    below(config, 'pip/pip.conf'),
    below(home, '.pip/pip.conf'),
    below(home, 'Library/Application Support/pip/pip.conf'),
    '/etc/xdg/pip/pip.conf',
    '/etc/pip.conf',
  ]
  // Both have a setting that ignores all files.
  const uvText = env['UV_NO_CONFIG'] ? '' : await files(uvFiles)
  const pipText = env['PIP_CONFIG_FILE'] === devNull ? '' : await files(pipFiles)
  const uv = [
    ...words(env['UV_DEFAULT_INDEX']),
    ...words(env['UV_INDEX_URL']),
    ...words(env['UV_INDEX']),
    ...words(env['UV_EXTRA_INDEX_URL']),
    ...tomlUrls(uvText),
  ]
  const pip = [
    ...words(env['PIP_INDEX_URL']),
    ...words(env['PIP_EXTRA_INDEX_URL']),
    ...iniValues(pipText, 'index-url'),
    ...iniValues(pipText, 'extra-index-url'),
  ]
  const urls = [...new Set([...uv, ...pip].filter(isHttp))]
  const caFile = env['SSL_CERT_FILE'] || env['PIP_CERT'] || iniValues(pipText, 'cert')[0]
  return { urls, onlyPip: urls.length > 0 && !uv.some(isHttp), caFile }
}

/** A variable may hold several, and each may have a name: `corp=https://…`. */
function words(text = ''): string[] {
  return text
    .split(/\s+/)
    .map((word) => word.replace(/^[A-Za-z0-9._-]+=(?=https?:)/, ''))
    .filter((word) => word !== '')
}

/** `index-url = "…"`, `extra-index-url = ["…"]`, and `url = "…"` below `[[index]]`. */
function tomlUrls(text: string): string[] {
  return [...text.matchAll(/^\s*(?:index-url|extra-index-url|url)\s*=\s*(\[[^\]]*\]|"[^"\n]*"|'[^'\n]*')/gm)].flatMap(([, value = '']) =>
    [...value.matchAll(/["']([^"'\n]*)["']/g)].map(([, url = '']) => url),
  )
}

/** A value of pip's files goes on in indented lines. */
function iniValues(text: string, key: string): string[] {
  const found = new RegExp(`^${key}[ \\t]*[=:](.*(?:\\n[ \\t]+\\S.*)*)`, 'gm')
  return [...text.matchAll(found)].flatMap(([, value = '']) => words(value))
}

function isHttp(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? '')
}

async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8')
}
