// Whether node_modules holds what package-lock.json asks for, by the list that npm leaves there at the end of an install: a failed one
// leaves none. Plain JavaScript without dependencies, for any Node.
import { existsSync, readFileSync } from 'node:fs'

/** @param {string} root with a slash at its end */
export function areInstalled(root) {
  const wanted = packagesOf(`${root}package-lock.json`)
  const found = packagesOf(`${root}node_modules/.package-lock.json`)
  if (wanted === undefined || found === undefined) return false
  const isFound = ([path, entry]) =>
    found[path] === undefined ? mayBeAbsent(entry) : isSame(entry, found[path]) && existsSync(`${root}${path}`)
  return Object.keys(found).every((path) => wanted[path] !== undefined) && Object.entries(wanted).every(isFound)
}

/** Without the project itself. Undefined: there is no such file, or it is broken. */
function packagesOf(file) {
  try {
    const { '': _, ...packages } = JSON.parse(readFileSync(file, 'utf8')).packages
    return packages
  } catch {
    return undefined
  }
}

/** Optional ones for other machines, and what only those need. */
function mayBeAbsent({ optional, os, cpu, libc }) {
  const isForUs = (os !== undefined || cpu !== undefined) && allows(os, process.platform) && allows(cpu, process.arch)
  return optional === true && (!isForUs || libc !== undefined)
}

/** A list, or a single name; `!name` excludes. */
function allows(names, name) {
  if (names === undefined) return true
  const all = [names].flat()
  return all.includes(name) || (all.every((each) => each.startsWith('!')) && !all.includes(`!${name}`))
}

function isSame(wanted, found) {
  if (wanted.link || found.link) return wanted.link === found.link && wanted.resolved === found.resolved
  return wanted.version === found.version && (!wanted.integrity || !found.integrity || wanted.integrity === found.integrity)
}
