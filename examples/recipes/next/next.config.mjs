// Callgate starts processes and finds files beside its own: it is loaded by Node, not bundled.
export default { serverExternalPackages: ["callgate"] };
