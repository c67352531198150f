import type { ConfigMap } from '@thv/kube'

/** Writes at a time: enough to hide the way to the API server, too few to crowd out other controllers. */
const WAVE = 4

/**
 * Groups of ConfigMaps that may be written at the same time, in order. Numbered ones (`NAME-1` …) come before the first ones (`NAME`), which hold
 * what moves between one ConfigMap and several: no server is missing meanwhile.
 */
export function writeWaves(maps: readonly ConfigMap[]): readonly (readonly ConfigMap[])[] {
  const names = new Set(maps.map(({ metadata }) => metadata.name))
  const isNumbered = ({ metadata: { name } }: ConfigMap) => /-\d{1,2}$/.test(name) && names.has(name.replace(/-\d{1,2}$/, ''))
  const numbered = maps.filter(isNumbered)
  const firsts = maps.filter((map) => !isNumbered(map))
  return [...inGroups(numbered), ...inGroups(firsts)]
}

function inGroups(maps: readonly ConfigMap[]): ConfigMap[][] {
  return Array.from({ length: Math.ceil(maps.length / WAVE) }, (_, index) => maps.slice(index * WAVE, (index + 1) * WAVE))
}
