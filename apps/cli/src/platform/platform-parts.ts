import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { OwnImage } from '@thv/cluster/node/images/image-resolver'
import type { PlatformManifest } from '@thv/cluster/platform/apply-manifests'
import { ThvError } from '@thv/kernel/errors'
import {
  clusterRoleBindings,
  clusterRoles,
  customResourceDefinitions,
  deployments,
  namespaces,
  roleBindings,
  roles,
  serviceAccounts,
  services,
} from '@thv/kube/objects/resource-types'
import type { KubeObject } from '@thv/kube/objects/types'
import { memorySettings } from '@thv/programs/memory-settings'
import { KINDS } from '@thv/resources/kinds/kinds'
import { crdOf } from '@thv/resources/schema/crd'
import { parseAllDocuments } from 'yaml'

/** The parts that the platform runs from its first moment. */
export interface PlatformParts {
  readonly ownImages: readonly OwnImage[]
  readonly manifests: readonly PlatformManifest[]
}

export interface PartsOptions {
  /** The proxies of all servers run in one process. */
  readonly oneProxyProcess?: boolean | undefined
}

const IMAGE = 'toolhive-ts'
/** Names of programs in our image, and where they are built from. */
const PROGRAMS = {
  'thv-operator': 'apps/operator/src/main.ts',
  'thv-proxyrunner': 'apps/proxyrunner/src/main.ts',
  'thv-registry-api': 'apps/registry/src/main.ts',
  vmcp: 'apps/vmcp/src/main.ts',
  thv: 'apps/cli/src/main.ts',
}
const OPERATOR_FILE = 'deploy/manifests/local-operator.yaml'
/** Settings of the operator for this platform: Services have addresses that the host reaches, and packages run as they are. */
const OPERATOR_ENV = { TOOLHIVE_SERVICE_URLS: 'address', TOOLHIVE_PACKAGE_IMAGES: 'native' }
const OPERATOR_KINDS = [namespaces, serviceAccounts, clusterRoles, clusterRoleBindings, roles, roleBindings, services, deployments]

/** Bundles our programs if they changed, and reads the operator's manifests. Programs get the memory settings of `env`, or ours. Needs the checkout that this program runs from. */
export async function loadPlatformParts(
  env: Readonly<Record<string, string | undefined>>,
  { oneProxyProcess = false }: PartsOptions = {},
): Promise<PlatformParts> {
  const root = findCheckout()
  const { ensureBundle, compileCache } = (await import(pathToFileURL(join(root, 'scripts/bundle.mjs')).href)) as Bundler
  const programs = await Promise.all(
    Object.entries(PROGRAMS).map(async ([name, entry]) => [name, [process.execPath, await ensureBundle(entry)]] as const),
  )
  const byName: Readonly<Record<string, readonly string[]>> = Object.fromEntries(programs)
  // V8's compile cache: only the first start of a program compiles.
  const programEnv = { ...memorySettings(env), NODE_COMPILE_CACHE: compileCache }
  return {
    ownImages: [
      {
        ...{ repository: IMAGE, programs: { ...byName, node: [process.execPath] }, main: 'thv-operator', env: programEnv },
        ...(oneProxyProcess && { hosts: { 'thv-proxyrunner': ['host'] } }),
      },
    ],
    manifests: [...definitions(), ...operatorManifests(readFileSync(join(root, OPERATOR_FILE), 'utf8'))],
  }
}

/** Folder of the quick start's manifests. */
export function examplesFolder(): string {
  return join(findCheckout(), 'deploy/examples/quickstart')
}

/** This program, to be started once more. */
export function programPath(): string {
  return join(findCheckout(), 'apps/cli/bin/thv.js')
}

interface Bundler {
  ensureBundle(entry: string): Promise<string>
  readonly compileCache: string
}

function findCheckout(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, OPERATOR_FILE)) && existsSync(join(folder, 'scripts/bundle.mjs'))) return folder
    if (folder === dirname(folder)) throw new ThvError('usage', 'thv up must run from a checkout of the repository')
  }
}

function definitions(): PlatformManifest[] {
  return KINDS.map((kind) => ({ type: customResourceDefinitions, object: crdOf(kind) as unknown as KubeObject }))
}

/** The manifests of any cluster with the differences of this platform: its API server asks no admission webhooks. */
export function operatorManifests(text: string): PlatformManifest[] {
  const documents = parseAllDocuments(text)
  const objects = (Array.isArray(documents) ? documents : []).map((document) => document.toJS() as KubeObject)
  return objects
    .filter(({ kind }) => kind !== 'ValidatingWebhookConfiguration')
    .map((object) => {
      const type = OPERATOR_KINDS.find(({ kind }) => kind === object.kind)
      if (type === undefined) throw new ThvError('manifest_invalid', `${OPERATOR_FILE}: ${object.kind} is not expected there`)
      return { type, object: object.kind === 'Deployment' ? withEnv(object as OperatorDeployment) : object }
    })
}

interface OperatorContainer {
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string }[]
}

interface OperatorDeployment extends KubeObject {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly OperatorContainer[] } }
  }
}

function withEnv(deployment: OperatorDeployment): KubeObject {
  const { template } = deployment.spec
  const added = Object.entries(OPERATOR_ENV).map(([name, value]) => ({ name, value }))
  const containers = template.spec.containers.map((container) => ({
    ...container,
    args: (container.args ?? []).filter((arg) => !arg.startsWith('--webhook-bind-address')),
    env: [...(container.env ?? []).filter(({ name }) => !(name in OPERATOR_ENV)), ...added],
  }))
  const spec = { ...deployment.spec, template: { ...template, spec: { ...template.spec, containers } } }
  return { ...deployment, spec } as KubeObject
}
