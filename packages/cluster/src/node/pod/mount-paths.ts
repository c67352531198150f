import { join } from 'node:path'
import { TMP_VOLUME } from '@thv/kube/objects/implied-volumes'
import { mountPlace } from '../volumes/pod-volumes.ts'
import type { ContainerSpec } from './pod-spec.ts'

/**
 * Pods have no mount namespace: what a program would find at `/etc/app` lies below the container's root folder. Returns a function that
 * turns paths in a text (alone, after `=`, `:`, `,` or a blank, or in a file: URL) which begin with a mount path into where they really lie.
 * Only for mounts that somebody declared: a user who writes /tmp/notes and mounts nothing there means the folder of this machine.
 */
export function pathRewriter(container: ContainerSpec, root: string): (text: string) => string {
  const places = (container.volumeMounts ?? [])
    .filter(({ name }) => name !== TMP_VOLUME)
    .map(mountPlace)
    .filter((place) => place !== '/')
  if (places.length === 0) return (text) => text
  const longestFirst = [...new Set(places)].sort((a, b) => b.length - a.length).map(literal)
  const pattern = new RegExp(`(^|[\\s=:,;'"]|file://)(${longestFirst.join('|')})(?=$|[/\\s:,;'"?#])`, 'g')
  return (text) => text.replace(pattern, (_, before: string, path: string) => `${before}${join(root, path)}`)
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
