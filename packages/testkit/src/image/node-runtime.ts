import { execFileSync } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rootCertificates } from 'node:tls'
import type { TarEntry } from './tar.ts'

/** Where Node lies in the images. */
export const imageNode = '/usr/local/bin/node'
/** The user of the images. */
export const imageUser = '1000:1000'

/** Files that Node needs in an otherwise empty image: its libraries, authorities, a user, a folder for temporary files. */
export function nodeRuntimeFiles(nodeBinary: string): TarEntry[] {
  return [
    file(imageNode.slice(1), realpathSync(nodeBinary), 0o755),
    ...libraries(realpathSync(nodeBinary)).map((path) => file(path.slice(1), realpathSync(path), 0o755)),
    text('etc/ssl/certs/ca-certificates.crt', `${rootCertificates.join('\n')}\n`),
    text('etc/passwd', 'root:x:0:0:root:/root:/sbin/nologin\nthv:x:1000:1000:thv:/home/thv:/sbin/nologin\n'),
    text('etc/group', 'root:x:0:\nthv:x:1000:\n'),
    text('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n'),
    { path: 'home/thv', uid: 1000, gid: 1000, content: { kind: 'folder' } },
    { path: 'tmp', mode: 0o1777, content: { kind: 'folder' } },
  ]
}

export function text(path: string, content: string, mode = 0o644): TarEntry {
  return { path, mode, content: { kind: 'bytes', bytes: content } }
}

export function file(path: string, source: string, mode = 0o644): TarEntry {
  return { path, mode, content: { kind: 'file', source } }
}

/** As `ldd` names them, and those that the C library loads by itself to look up names. */
function libraries(binary: string): string[] {
  const named = parseLdd(execFileSync('ldd', [binary], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }))
  const libc = named.find((path) => /\/libc\.so/.test(path))
  const lookups = libc ? ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'].map((name) => join(dirname(libc), name)) : []
  return [...new Set([...named, ...lookups.filter((path) => existsSync(path))])].sort()
}

/** Lines like `libm.so.6 => /lib/libm.so.6 (0x…)` and, for the loader itself, `/lib64/ld-linux.so.2 (0x…)`. */
export function parseLdd(printed: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(printed)
  if (missing) throw new Error(`the library ${missing[1]} of Node is not on this machine`)
  return [...printed.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].flatMap((match) => (match[1] === undefined ? [] : [match[1]]))
}
