// wagmi, viem and ethers, as a dapp bundles them; tests call them in the page.
import * as wagmi from "@wagmi/core";
import * as ethers from "ethers";
import * as viem from "viem";
import { mainnet, polygon } from "viem/chains";

window.clients = { wagmi, ethers, viem, chains: { mainnet, polygon } };
