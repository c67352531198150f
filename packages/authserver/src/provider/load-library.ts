type Library = typeof import('oidc-provider')

let loading: Promise<Library> | undefined

/** The library, loaded once. It warns on the console about every version of Node that is not an LTS release, which is not for our users. */
export function loadLibrary(): Promise<Library> {
  loading ??= quietly(() => import('oidc-provider'))
  return loading
}

let quiet = 0
let loud: Pick<Console, 'warn' | 'info'> | undefined

/** Also for `new Provider`, which gives advice about settings. Calls may overlap: the last one that ends gives the console back. */
export async function quietly<T>(work: () => T | Promise<T>): Promise<T> {
  const { warn, info } = console
  loud ??= { warn, info }
  quiet++
  console.warn = () => {}
  console.info = () => {}
  try {
    return await work()
  } finally {
    quiet--
    if (quiet === 0) {
      Object.assign(console, loud)
      loud = undefined
    }
  }
}
