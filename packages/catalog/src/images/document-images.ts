import { isObject, objectsAt, type UnknownObject } from '@thv/kernel/json'

/** Images of a registry file in either format: of its servers, and of the members of its groups. Nothing for a text that is no such file. */
export function documentImages(text: string): string[] {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    return []
  }
  if (!isObject(file)) return []
  const inner = isObject(file['data']) ? file['data'] : file
  return [...imagesIn(inner['servers']), ...objectsAt(file, 'groups').flatMap((group) => imagesIn(group['servers']))]
}

/** Identifiers of the `oci` packages of a `server.json` document. */
export function packageImages(document: UnknownObject): string[] {
  return objectsAt(document, 'packages').flatMap(({ registryType, identifier }) =>
    registryType === 'oci' && typeof identifier === 'string' ? [identifier] : [],
  )
}

/** `servers` is an object or a list. */
function imagesIn(servers: unknown): string[] {
  const entries = Array.isArray(servers) ? servers : isObject(servers) ? Object.values(servers) : []
  return entries.filter(isObject).flatMap((entry) => {
    const document = isObject(entry['server']) ? entry['server'] : entry
    return [...(typeof document['image'] === 'string' ? [document['image']] : []), ...packageImages(document)]
  })
}
