import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MAX_SHARDS, shardFile, shardName } from '@thv/catalog/shards/shards'
import { configMaps, type KubeClient } from '@thv/kube'
import { manifestsIn } from '@thv/resources/testing/fixtures'
import type { ClusterAccess } from '@thv/testkit/cluster/cluster-access'
import { eventually } from '../../apps/operator/src/testing/operator-harness.ts'
import { ask, type Manifest, type ServedDocument } from '../../apps/registry/src/kubernetes/testing/cluster-world.ts'
import { startProgramInPod } from '../e2e/pod/pod-process.ts'

/*
 * The registry server of an MCPRegistry, as its pod would run it: with the configuration and the data that the operator wrote and the
 * token of the account that the operator made. There is no node here.
 */

const PROGRAM = fileURLToPath(new URL('../../apps/registry/bin/thv-registry-api.js', import.meta.url))
const ADDRESSES = ['--address=127.0.0.1:0', '--internal-address=127.0.0.1:0']

export interface RegistryPod extends AsyncDisposable {
  /** `name` → newest document. */
  servers(): Promise<Record<string, ServedDocument>>
  untilServers(what: string, wanted: (servers: Record<string, ServedDocument>) => boolean): Promise<Record<string, ServedDocument>>
}

export async function startRegistryPod(
  cluster: ClusterAccess,
  admin: KubeClient,
  { namespace, name, files = {} }: { readonly namespace: string; readonly name: string; readonly files?: Readonly<Record<string, string>> },
): Promise<RegistryPod> {
  const config = await eventually('the configuration', async () => {
    const map = await admin.tryGet(configMaps, { namespace, name: `${name}-registry-server-config` })
    return map?.data?.['config.yaml']
  })
  const exported = await exportedFiles(admin, { namespace, name })
  const pod = startProgramInPod({
    cluster,
    token: await tokenOf(admin, { namespace, account: `${name}-registry-api` }),
    namespace,
    hosts: [],
    program: PROGRAM,
    args: (root) => ['serve', `--config=${root}/config/config.yaml`, `--data-dir=${root}/data`, ...ADDRESSES],
    files: (root) => ({
      'config/config.yaml': config.replaceAll(/path: \/(registry|data)/g, `path: ${root}/$1`),
      'data/.keep': '',
      ...files,
      ...Object.fromEntries(Object.entries(exported).map(([file, text]) => [`registry/cluster/${file}`, text])),
    }),
  })
  const listening = () =>
    pod.output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find(({ msg }) => msg === 'listening')
  const url = String((await eventually('the registry listens', async () => listening() ?? fail(pod.output), 60_000))['address'])

  async function servers(): Promise<Record<string, ServedDocument>> {
    const answer = await ask(`${url}/registry/${name}/v0.1/servers?limit=100&version=latest`)
    const { servers: list = [] } = (await answer.json()) as { servers?: { server: ServedDocument }[] }
    return Object.fromEntries(list.map(({ server }) => [server.name, server]))
  }
  return {
    servers,
    untilServers: (what, wanted) =>
      eventually(
        what,
        async () => {
          const found = await servers()
          return wanted(found) ? found : fail(`${JSON.stringify(found)}\n${pod.output.slice(-2_000)}`)
        },
        60_000,
      ),
    [Symbol.asyncDispose]: () => pod[Symbol.asyncDispose](),
  }
}

/** The shards of operator mode as the projected volume would show them. */
export async function exportedFiles(
  admin: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (let index = 0; index < MAX_SHARDS; index++) {
    const map = await admin.tryGet(configMaps, { namespace, name: shardName(`${name}-registry-export`, index) })
    const text = map?.data?.['registry.json']
    if (text !== undefined) files[shardFile(index)] = text
  }
  return files
}

async function tokenOf(admin: KubeClient, { namespace, account }: { namespace: string; account: string }): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  return await eventually(`a token of ${account}`, async () => {
    const answer = await admin.raw('POST', path, { body })
    return (answer.json() as { status: { token: string } }).status.token
  })
}

function fail(message: string): never {
  throw new Error(message)
}

const SEEDS = new URL('../fixtures/seeds/', import.meta.url)

/** The manifests of a file of the design documents. */
export function seed(file: string): Manifest[] {
  return manifestsIn(readFileSync(new URL(file, SEEDS), 'utf8')) as unknown as Manifest[]
}
