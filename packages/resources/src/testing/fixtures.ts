import { readdirSync, readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'

const FIXTURES = new URL('../../../../test/fixtures/resources/', import.meta.url)

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string }
  spec?: unknown
}

/** The valid manifests of a kind: together they set every field of its spec. */
export function fixturesOf(plural: string): { file: string; manifest: Manifest }[] {
  const folder = new URL(`${plural}/`, FIXTURES)
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .toSorted()
    .flatMap((file) => manifestsIn(readFileSync(new URL(file, folder), 'utf8')).map((manifest) => ({ file, manifest })))
}

export function manifestsIn(yaml: string): Manifest[] {
  return parseAllDocuments(yaml).map((document) => {
    if (document.errors[0]) throw document.errors[0]
    return document.toJSON() as Manifest
  })
}
