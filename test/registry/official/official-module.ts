import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isCi } from '@thv/testkit/cluster/global-setup'
import { goProblem } from '@thv/testkit/cluster/programs/go-build'
import { parse } from 'yaml'

const run = promisify(execFile)
const MODULE = 'github.com/modelcontextprotocol/registry@v1.8.1'
const DOWNLOAD_LIMIT_MS = 120_000

/** Documents that the official registry publishes. None of them is part of this repository. */
export interface OfficialRegistry {
  readonly openApi: OpenApiDocument
  /** The schemas of `server.json`, by their date. */
  readonly schemas: ReadonlyMap<string, object>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

export interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>>
}

/** Why the documents are not available here; undefined when they are. In CI nothing is skipped: there the download itself fails. */
export function officialProblem(): string | undefined {
  return isCi(process.env) ? undefined : goProblem()
}

/** Downloaded once per machine, as a Go module, into the cache folder: version and checksum are fixed by Go's own means. */
export async function loadOfficialRegistry(): Promise<OfficialRegistry> {
  const folder = await moduleFolder()
  const openApi = parse(await readFile(join(folder, 'docs', 'reference', 'api', 'openapi.yaml'), 'utf8')) as OpenApiDocument
  const schemaFolder = join(folder, 'internal', 'validators', 'schemas')
  const files = (await readdir(schemaFolder)).filter((name) => /^\d{4}-\d{2}-\d{2}\.json$/.test(name)).sort()
  const schemas = new Map<string, object>()
  for (const file of files)
    schemas.set(file.slice(0, -'.json'.length), JSON.parse(await readFile(join(schemaFolder, file), 'utf8')) as object)
  if (schemas.size === 0) throw new Error(`there are no schemas in ${MODULE}`)
  return { openApi, schemas }
}

async function moduleFolder(): Promise<string> {
  const env = { ...process.env, GOMODCACHE: join(cacheRoot(), 'toolhive-ts', 'go-modules'), GOFLAGS: '-modcacherw', GOTOOLCHAIN: 'local' }
  const { stdout } = await run('go', ['mod', 'download', '-json', MODULE], { cwd: tmpdir(), env, timeout: DOWNLOAD_LIMIT_MS })
  const { Dir, Error: problem } = JSON.parse(stdout) as { Dir?: string; Error?: string }
  if (Dir === undefined) throw new Error(`${MODULE} cannot be downloaded: ${problem}`)
  return Dir
}

function cacheRoot(): string {
  return process.env['THV_CACHE_DIR'] || process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
}
