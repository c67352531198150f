import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CustomResourceDefinition, KubeClient } from '@thv/kube'
import { isNotFound } from '@thv/kube/client/kube-api-error'
import { customResourceDefinitions } from '@thv/kube/objects/resource-types'
import { parseAllDocuments } from 'yaml'
import { isCi } from '../cluster/global-setup.ts'
import { goProblem } from '../cluster/programs/go-build.ts'

const run = promisify(execFile)
const DOWNLOAD_LIMIT_MS = 120_000
const READY_WITHIN_MS = 60_000

/** The older one serves ReferenceGrant as v1beta1 only. */
export const gatewayApiReleases = ['v1.4.1', 'v1.6.3'] as const
export type GatewayApiRelease = (typeof gatewayApiReleases)[number]

/** Why the definitions cannot be downloaded here; undefined when they can. In CI nothing is skipped: there the download itself fails. */
export function gatewayApiProblem(): string | undefined {
  return isCi(process.env) ? undefined : goProblem()
}

/** The kinds that an export reads: a server of one test needs no others. */
export const exportedGatewayKinds = ['gateways', 'httproutes', 'referencegrants'] as const

/** The definitions of the standard channel as the project publishes them: downloaded once per machine as a Go module, with its checksum. */
export async function gatewayApiDefinitions(
  release: GatewayApiRelease,
  plurals?: readonly string[],
): Promise<readonly CustomResourceDefinition[]> {
  const folder = join(await moduleFolder(release), 'config', 'crd', 'standard')
  const isWanted = (name: string) => plurals?.some((plural) => name.endsWith(`_${plural}.yaml`)) ?? name.endsWith('.yaml')
  const files = (await readdir(folder)).filter(isWanted).sort()
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  const documents = texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as { kind?: string } | null))
  return documents.filter((document) => document?.kind === 'CustomResourceDefinition') as unknown as CustomResourceDefinition[]
}

const INSTALLED: GatewayApiRelease = 'v1.6.3'
/** The last of the release, in the order in which they are installed. */
const LAST = 'udproutes'

/** Installs the newer release, or these of its kinds, and waits until they are served. Safe to call from every test file. */
export async function installGatewayApi(client: KubeClient, plurals?: readonly string[]): Promise<void> {
  if (plurals !== undefined || !(await isInstalled(client)))
    for (const definition of await gatewayApiDefinitions(INSTALLED, plurals))
      await client.apply(customResourceDefinitions, definition, { fieldManager: 'test', force: true, timeoutMs: READY_WITHIN_MS })
  const deadline = performance.now() + READY_WITHIN_MS
  for (const plural of exportedGatewayKinds) {
    while (!(await isServed(client, plural))) {
      if (performance.now() > deadline) throw new Error(`${plural} are not served`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** Another file has done it. */
async function isInstalled(client: KubeClient): Promise<boolean> {
  const last = await client.tryGet(customResourceDefinitions, { name: `${LAST}.gateway.networking.k8s.io` })
  return last?.metadata.annotations?.['gateway.networking.k8s.io/bundle-version'] === INSTALLED
}

async function isServed(client: KubeClient, plural: string): Promise<boolean> {
  try {
    await client.list({ group: 'gateway.networking.k8s.io', version: 'v1', kind: '', plural, namespaced: true }, { limit: 1 })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}

async function moduleFolder(release: GatewayApiRelease): Promise<string> {
  const module = `sigs.k8s.io/gateway-api@${release}`
  const env = { ...process.env, GOMODCACHE: join(cacheRoot(), 'toolhive-ts', 'go-modules'), GOFLAGS: '-modcacherw', GOTOOLCHAIN: 'local' }
  const { stdout } = await run('go', ['mod', 'download', '-json', module], { cwd: tmpdir(), env, timeout: DOWNLOAD_LIMIT_MS })
  const { Dir, Error: problem } = JSON.parse(stdout) as { Dir?: string; Error?: string }
  if (Dir === undefined) throw new Error(`${module} cannot be downloaded: ${problem}`)
  return Dir
}

function cacheRoot(): string {
  return process.env['THV_CACHE_DIR'] || process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
}
