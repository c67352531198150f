const PREFIX = 'toolhive.stacklok.dev/'

/** Annotations that export a resource and describe its entry. */
export const ExportAnnotation = {
  /** Exactly `true`, on an HTTPRoute or on an MCP resource. */
  export: `${PREFIX}registry-export`,
  url: `${PREFIX}registry-url`,
  description: `${PREFIX}registry-description`,
  tier: `${PREFIX}registry-tier`,
  title: `${PREFIX}registry-title`,
  icon: `${PREFIX}registry-icon`,
  category: `${PREFIX}registry-category`,
  version: `${PREFIX}registry-version`,
  tools: `${PREFIX}tools`,
  toolDefinitions: `${PREFIX}tool-definitions`,
  claims: `${PREFIX}authz-claims`,
} as const

export type Annotations = Readonly<Record<string, string>>

/** `True`, `1` and ` true` do not opt in. */
export function optsIn(annotations: Annotations): boolean {
  return annotations[ExportAnnotation.export] === 'true'
}
