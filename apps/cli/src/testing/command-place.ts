import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type EmbeddedApiServer, startApiServer } from '@thv/cluster/apiserver/api-server'
import { kubeconfigText } from '@thv/cluster/platform/kubeconfig'
import { createKubeClient, type KubeClient } from '@thv/kube/client/client'
import { bearerToken } from '@thv/kube/client/connection'
import { customResourceDefinitions } from '@thv/kube/objects/resource-types'
import { crdYamlOf } from '@thv/resources/crd-yaml'
import { KINDS } from '@thv/resources/kinds/kinds'
import { API_GROUP, STORAGE_VERSION } from '@thv/resources/schema/kind-definition'
import { parse } from 'yaml'
import { loadKinds } from '../cluster/kind-catalog.ts'
import { runThv, type ThvRun } from './run-thv.ts'

/** A folder whose `.thv` leads to an API server, as `thv up` leaves it. */
export interface CommandPlace {
  readonly folder: string
  readonly client: KubeClient
  thv(...args: string[]): Promise<ThvRun>
  /** Writes a file below the folder. */
  write(name: string, text: string): string
  stop(): Promise<void>
}

export interface ServerAccess {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
}

/** With our definitions, in a namespace of the caller's. */
export async function commandPlace(access: ServerAccess): Promise<CommandPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'thv-cli-'))
  mkdirSync(join(folder, '.thv'))
  writeFileSync(join(folder, '.thv', 'kubeconfig'), kubeconfigText(access))
  const client = createKubeClient({ server: access.url, tls: { ca: access.caPem }, auth: bearerToken(access.adminToken) })
  await Promise.all(
    KINDS.map((kind) => client.apply(customResourceDefinitions, parse(crdYamlOf(kind)), { fieldManager: 'cli-test', force: true })),
  )
  await served(client)
  return {
    folder,
    client,
    thv: (...args) => runThv(args, { cwd: folder }),
    write(name, text) {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
      return path
    },
    async stop() {
      await client.close()
      rmSync(folder, { recursive: true })
    },
  }
}

/** A definition is served a moment after it was written. */
async function served(client: KubeClient): Promise<void> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const catalog = await loadKinds(client)
    const missing = KINDS.filter(({ kind }) => catalog.ofManifest(`${API_GROUP}/${STORAGE_VERSION}`, kind) === undefined)
    if (missing.length === 0) return
    if (Date.now() > deadline) throw new Error(`not served: ${missing.map(({ kind }) => kind).join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** The same on an embedded API server of its own, in memory. */
export async function embeddedPlace(): Promise<CommandPlace & { readonly server: EmbeddedApiServer }> {
  const server = await startApiServer()
  const place = await commandPlace(server)
  return {
    ...place,
    server,
    async stop() {
      await place.stop()
      await server.close()
    },
  }
}
