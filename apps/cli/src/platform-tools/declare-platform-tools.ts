import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube/client/client'
import { mcpServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { resourceTypeOf } from '@thv/resources/schema/kind-definition'
import { writePrivate } from '../local-platform/running-platform.ts'

const type = resourceTypeOf(mcpServerEntry)
const KEY = { namespace: 'default', name: 'platform-tools' }
const GROUP = 'quickstart'
const FILE = 'platform-tools.url'

export async function arePlatformToolsDeclared(client: Pick<KubeClient, 'tryGet'>, signal?: AbortSignal): Promise<boolean> {
  return (await client.tryGet(type, KEY, { signal })) !== undefined
}

/**
 * Declares the server of the platform's process as a member of the quick start's group. `isNew`: the examples are declared for the first
 * time; later only the address is updated, so that an entry that the user deleted does not come back.
 */
export async function declarePlatformTools(
  client: Pick<KubeClient, 'apply' | 'tryGet'>,
  { folder, isNew, signal }: { readonly folder: string; readonly isNew: boolean; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const url = notedUrl(folder)
  if (url === undefined || (!isNew && !(await arePlatformToolsDeclared(client, signal)))) return
  const spec = { remoteUrl: url, transport: 'streamable-http', insecureAllowHTTP: true, groupRef: { name: GROUP } }
  await client.apply(type, { metadata: KEY, spec } as never, { fieldManager: 'thv-up', force: true, signal })
}

/** The address of the last start; undefined before the first. */
export function notedUrl(folder: string): string | undefined {
  try {
    const text = readFileSync(join(folder, FILE), 'utf8').trim()
    return URL.canParse(text) ? text : undefined
  } catch {
    return undefined // not started yet
  }
}

export function noteUrl(folder: string, url: string): void {
  writePrivate(join(folder, FILE), `${url}\n`)
}
