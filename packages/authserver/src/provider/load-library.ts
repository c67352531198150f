type Library = typeof import('oidc-provider')

let loading: Promise<Library> | undefined

/** The library, loaded once. It warns on the console about every version of Node that is not an LTS release, which is not for our users. */
export function loadLibrary(): Promise<Library> {
  loading ??= quietly(() => import('oidc-provider'))
  return loading
}

/** Also for `new Provider`, which gives advice about settings. */
export async function quietly<T>(work: () => T | Promise<T>): Promise<T> {
  const { warn, info } = console
  console.warn = () => {}
  console.info = () => {}
  try {
    return await work()
  } finally {
    Object.assign(console, { warn, info })
  }
}
