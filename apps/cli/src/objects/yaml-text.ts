import { type DocumentOptions, type ParseOptions, type SchemaOptions, stringify, type Tags } from 'yaml'

/**
 * As kubectl reads YAML: version 1.1, so that `0644` is octal and `yes` is true, but times and numbers with colons stay texts.
 * The output reads the same in both versions.
 */
export const KUBE_YAML: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  customTags: (tags: Tags) => tags.filter((tag) => typeof tag === 'string' || !(tag.format === 'TIME' || isForeign(tag.tag))),
}

export function yamlText(value: unknown): string {
  return stringify(value, { version: '1.1', lineWidth: 0 })
}

function isForeign(tag: string | undefined): boolean {
  return /:(timestamp|binary|omap|pairs|set)$/.test(tag ?? '')
}
