/* Kubernetes' `field.Path`, spelt as text. The root is the empty text. */

export function childField(field: string, name: string): string {
  return field === '' ? name : `${field}.${name}`
}

/** A key of a map: `spec.labels[app]`. */
export function keyField(field: string, key: string): string {
  return `${field}[${key}]`
}
