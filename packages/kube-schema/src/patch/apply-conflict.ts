import { goQuote } from '../values/go-text.ts'
import { difference, type FieldSet, isEmptySet, pathsOf, pathText } from './field-set.ts'
import type { Manager } from './managed-fields.ts'

/** Message of the 409 of server-side apply. */
export interface ApplyConflict {
  readonly message: string
  /** `status.details.causes`. */
  readonly causes: readonly { readonly reason: 'FieldManagerConflict'; readonly message: string; readonly field: string }[]
  /** The conflict without the fields that may be taken; undefined when none is left. */
  without(allowed: FieldSet): ApplyConflict | undefined
}

export function conflictOf(conflicts: ReadonlyMap<Manager, FieldSet>): ApplyConflict {
  const byManager = [...conflicts].map(([manager, set]) => ({ name: managerText(manager), paths: [...pathsOf(set)].map(pathText) }))
  byManager.sort((a, b) => (a.name < b.name ? -1 : 1))
  const all = byManager.flatMap(({ name, paths }) => paths.map((field) => ({ name, field })))
  return {
    message: messageOf(byManager, all),
    causes: all.map(({ name, field }) => ({ reason: 'FieldManagerConflict', message: `conflict with ${name}`, field })),
    without(allowed) {
      const left = new Map<Manager, FieldSet>()
      for (const [manager, set] of conflicts) {
        const rest = difference(set, allowed)
        if (!isEmptySet(rest)) left.set(manager, rest)
      }
      return left.size > 0 ? conflictOf(left) : undefined
    },
  }
}

function messageOf(
  byManager: readonly { name: string; paths: readonly string[] }[],
  all: readonly { name: string; field: string }[],
): string {
  const [only] = all
  if (all.length === 1 && only) return `Apply failed with 1 conflict: conflict with ${only.name}: ${only.field}`
  const lines = byManager.flatMap(({ name, paths }) => [`conflicts with ${name}:`, ...paths.map((path) => `- ${path}`)])
  return `Apply failed with ${all.length} conflicts: ${lines.join('\n')}`
}

function managerText({ manager, operation, apiVersion, subresource }: Manager): string {
  const name = subresource === '' ? goQuote(manager) : `${goQuote(manager)} with subresource ${goQuote(subresource)}`
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}
