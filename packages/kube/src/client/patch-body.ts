import type { Patch } from './call-options.ts'
import type { Query } from './paths.ts'

export interface EncodedPatch {
  readonly contentType: string
  readonly body: string
  readonly query: Query
}

/** The server tells the four kinds of patch apart by their content type alone. */
export function encodePatch(patch: Patch): EncodedPatch {
  switch (patch.kind) {
    case 'json':
      return { contentType: 'application/json-patch+json', body: JSON.stringify(patch.ops), query: {} }
    case 'merge':
      return { contentType: 'application/merge-patch+json', body: JSON.stringify(patch.body), query: {} }
    case 'strategic':
      return { contentType: 'application/strategic-merge-patch+json', body: JSON.stringify(patch.body), query: {} }
    case 'apply': {
      // The name says YAML, and JSON is YAML.
      const query: Query = { fieldManager: patch.fieldManager, force: patch.force ? true : undefined }
      return { contentType: 'application/apply-patch+yaml', body: JSON.stringify(patch.object), query }
    }
  }
}
